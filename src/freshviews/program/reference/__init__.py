"""Interprets the trigger language in plain Python over dicts. The interpreter specifies what compiled code must do.

- ``interpreter.State`` runs a program; ``scalars`` evaluates expressions.
- ``incremental_trie_join`` maintains one rule by its trace; ``tracing`` maintains all traced joins of a program.
"""

__all__ = ["scalars"]
