"""Commits batches: a batch becomes one version. After an error or an interrupt, everything is as before the batch."""

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
    "keyed",
    "notices",
    "queues",
    "records",
    "string_keys",
    "threads",
]
