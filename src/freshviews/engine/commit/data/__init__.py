"""Runs scripts, and converts INSERT, UPDATE, DELETE and MERGE to signed rows."""

__all__ = ["counts", "script"]
