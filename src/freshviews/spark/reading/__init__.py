"""Reads a checkpoint from outside the pipeline."""

__all__ = ["arrival", "contents", "data_source", "disk", "select"]
