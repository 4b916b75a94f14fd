"""A batch becomes a version, or nothing has happened; errors, interrupts and subscribers."""

__all__ = ["commit", "failures", "fault", "interrupts", "notices", "two_values"]
