"""Durability: what is logged, images of the state, and recovery."""

__all__ = ["children", "database_image", "durability", "recovery"]
