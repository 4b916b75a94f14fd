"""Compiled blocks: their native state, the calls of their triggers and lanes, and how an empty one gets its rows."""

__all__ = ["at_once", "host_columns", "lanes", "native", "passes", "runtime"]
