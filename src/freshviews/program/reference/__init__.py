"""The executable specification: the interpreter of the trigger language, in plain Python over dicts.

``interpreter.State`` runs a program; ``incremental`` is the incremental trie join, ``tracing`` its place in a program;
``scalars`` evaluates expressions.
"""

__all__ = ["scalars"]
