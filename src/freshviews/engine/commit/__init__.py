"""Commits: makes a batch a version, or changes nothing after an error or an interrupt."""

__all__ = [
    "batch",
    "by_key",
    "changes",
    "collection",
    "commit",
    "data",
    "direct",
    "followed",
    "free_memory",
    "in_order",
    "interrupts",
    "keyed",
    "notices",
    "queues",
    "records",
    "string_keys",
    "threads",
]
