"""Keeps a database on disk, and opens it again: snapshots, images of native state, and recovery."""

__all__ = ["children", "database_image", "durability", "recovery"]
