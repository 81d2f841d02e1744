"""Adapters: how the suite drives schedulers that were not written for it."""
