"""Adds and multiplies payloads of several words. ``freshviews.ring`` defines the rings of these payloads."""

__all__ = ["cofactor", "cofactor_results", "doubles", "elements", "narrow", "steps", "wide"]
