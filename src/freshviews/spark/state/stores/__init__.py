"""Stores of checkpoints: names to bytes, each kind in a module of its own."""

__all__ = ["addresses", "folder", "store"]
