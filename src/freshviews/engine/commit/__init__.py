"""Commits: a batch becomes a version, or changes nothing if an error or an interrupt stops it."""

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
