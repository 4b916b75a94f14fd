"""Applies rows to a pipeline's engines, called cells, in Spark's Python workers."""

__all__ = ["advance", "arrow_kinds", "between_tasks", "csv_files", "files", "intake", "json_files", "rows", "worker"]
