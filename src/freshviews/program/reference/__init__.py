"""The executable specification: the interpreter of the trigger language, in plain Python over dicts.

- ``interpreter.State`` runs a program; ``scalars`` evaluates expressions.
- ``incremental_trie_join`` maintains one rule by its trace; ``tracing`` maintains all traced joins of a program.
"""

__all__ = ["scalars"]
