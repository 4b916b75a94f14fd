"""The kinds of sinks: files, messages, tables of databases and of a lakehouse, each in a module."""

__all__ = ["key_changes", "merge_sink", "message_sink", "noted", "sink_files", "table_sink"]
