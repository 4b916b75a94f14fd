"""Runs compiled blocks: their native state, triggers, lanes, and the backfill of an empty block."""

__all__ = ["at_once", "host_columns", "lanes", "native", "passes", "runtime"]
