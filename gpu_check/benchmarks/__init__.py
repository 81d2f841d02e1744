"""Timings, each against something else in the same run."""
