"""A batch becomes a version, or nothing has happened; errors, interrupts and subscribers."""

__all__ = ["commit", "in_order", "interrupts", "notices"]
