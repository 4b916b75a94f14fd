"""Machine code over raw memory: every data structure that a compiled program stands on. Knows no query."""

__all__ = ["btree", "cache", "codes", "hash", "image", "memory", "ordered", "output", "scalar", "trace", "trie"]
