"""The files of a durable database: log, snapshots, arrays, strings.

A commit appends one checksummed record to the log and syncs it. A snapshot stores the tables, and images of the views
as arrays that are mapped when the database is opened. After a snapshot, the older part of the log is deleted.
``directory`` lists the files.
"""

__all__ = ["array_file", "crash_points", "directory", "files", "log", "payload", "record", "strings"]
