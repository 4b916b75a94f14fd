"""Payloads of several words: the operations of their rings over memory (``freshviews.ring`` has the definitions)."""

__all__ = ["cofactor", "cofactor_results", "doubles", "elements", "narrow", "steps", "wide"]
