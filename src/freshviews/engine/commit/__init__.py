"""Commits: a batch becomes a version or changes nothing; with errors, interrupts and subscribers."""

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
