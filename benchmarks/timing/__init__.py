"""Workloads that time themselves: single calls, loads, memory, windows, models and first use."""

__all__ = [
    "backfill",
    "choice",
    "cofactor_ready",
    "cores",
    "enclosure",
    "first_use",
    "memory",
    "ridge",
    "single_edits",
    "single_rows",
    "tree_load",
    "trie",
    "windowed_graph",
]
