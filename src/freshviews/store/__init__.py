"""Files of a durable database: log, snapshots, arrays, strings."""

__all__ = ["array_file", "directory", "files", "log", "payload", "record", "steps", "strings"]
