"""Has the strategies of the leapfrog triejoin.

``trie_join`` repeats the join after every batch. ``incremental_trie_join`` repeats only the steps that a batch affects.
"""

__all__ = ["at_once", "incremental_trie_join", "key_order", "trie_join"]
