"""Stores of checkpoints, which map names to bytes; each kind of store is a module."""

__all__ = ["addresses", "folder", "store"]
