"""Measurements, each printed by one run."""
