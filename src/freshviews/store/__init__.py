"""Reads and writes the files of a durable database: log, snapshots, arrays, strings."""

__all__ = ["array_file", "crash_points", "directory", "files", "log", "payload", "record", "strings"]
