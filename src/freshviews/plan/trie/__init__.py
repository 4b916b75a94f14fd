"""Strategies of the leapfrog triejoin: recomputed after every batch, or maintained by its trace."""

__all__ = ["at_once", "incremental_trie_join", "key_order", "trie_join"]
