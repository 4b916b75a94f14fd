"""Reads and writes the files of a durable database: its log, snapshots, images of views, and strings."""

__all__ = ["array_file", "crash_points", "directory", "files", "log", "payload", "record", "strings"]
