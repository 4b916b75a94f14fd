"""Backfill: a new view gets the rows that its inputs hold."""

__all__ = ["at_once", "backfill", "passes"]
