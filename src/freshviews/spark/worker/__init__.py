"""Passes rows to the engines of cells, in the Python workers of Spark's executors."""

__all__ = ["advance", "arrow_kinds", "between_tasks", "csv_files", "files", "intake", "json_files", "rows", "worker"]
