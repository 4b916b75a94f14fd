"""Durability: snapshots, images of the state, recovery, and forked children."""

__all__ = ["children", "database_image", "durability", "recovery"]
