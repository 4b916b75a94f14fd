"""Payloads of several words: the operations of the rings that ``freshviews.ring`` defines."""

__all__ = ["cofactor", "cofactor_results", "doubles", "elements", "narrow", "steps", "wide"]
