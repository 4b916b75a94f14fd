"""Reads rows as tries, one variable at a time, for leapfrog joins.

- ``flat``, ``flat_build``: an immutable trie in arrays, built from a hash table for one join.
- ``iterator``: reads a version of an ordered tree as a trie; ``complement``: the codes that a trie lacks.
"""

__all__ = ["complement", "flat", "flat_build", "iterator"]
