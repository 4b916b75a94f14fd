"""Code that runs in Python workers of executors, and passes rows to the engines of their cells."""

__all__ = ["advance", "arrow_kinds", "between_tasks", "csv_files", "files", "intake", "json_files", "rows", "worker"]
