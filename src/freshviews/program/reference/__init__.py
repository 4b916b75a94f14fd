"""The executable specification: the interpreter of the trigger language, in plain Python over dicts."""

__all__ = ["incremental", "scalars"]
