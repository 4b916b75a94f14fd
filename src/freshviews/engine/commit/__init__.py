"""A batch becomes a version, or nothing has happened; errors, interrupts and subscribers."""

__all__ = [
    "batch",
    "collection",
    "commit",
    "direct",
    "followed",
    "free_memory",
    "in_order",
    "interrupts",
    "notices",
    "records",
    "string_keys",
    "threads",
]
