"""Reads the views and the status of a pipeline from its checkpoint, also while the pipeline runs."""

__all__ = ["arrival", "contents", "data_source", "disk", "select"]
