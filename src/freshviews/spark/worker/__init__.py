"""Passes rows to the engines of their cells, in Python workers of executors."""

__all__ = ["advance", "arrow_kinds", "between_tasks", "csv_files", "files", "intake", "json_files", "rows", "worker"]
