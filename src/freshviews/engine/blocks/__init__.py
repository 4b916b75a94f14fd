"""Compiled blocks: their native state, the calls of their triggers, lanes, and the backfill of an empty block."""

__all__ = ["at_once", "host_columns", "lanes", "native", "passes", "runtime"]
