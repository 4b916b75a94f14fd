"""Tries: flat ones over sorted rows, and iterators over ordered trees."""

__all__ = ["complement", "flat", "flat_build", "iterator"]
