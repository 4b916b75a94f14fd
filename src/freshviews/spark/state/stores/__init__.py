"""Implements stores, which hold checkpoints. A store maps names to bytes; each kind of store is a module."""

__all__ = ["addresses", "folder", "store"]
