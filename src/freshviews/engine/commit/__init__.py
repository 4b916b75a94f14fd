"""Commits: a batch becomes a version, or changes nothing if an error or an interrupt stops it."""

__all__ = [
    "batch",
    "by_key",
    "collection",
    "commit",
    "direct",
    "followed",
    "free_memory",
    "in_order",
    "interrupts",
    "keyed",
    "notices",
    "records",
    "string_keys",
    "threads",
]
