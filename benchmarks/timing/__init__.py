"""Workloads that time themselves: single calls, loads, memory, windows and first use."""

__all__ = [
    "backfill",
    "enclosure",
    "first_use",
    "memory",
    "single_edits",
    "single_rows",
    "tree_load",
    "trie",
    "windowed_graph",
]
