"""Leapfrog triejoin, either recomputed at every batch or maintained by its trace."""

__all__ = ["at_once", "incremental_trie_join", "key_order", "trie_join"]
