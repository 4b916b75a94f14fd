"""The kinds of sinks, each in a module: files, messages, tables of databases, and tables of a lakehouse."""

__all__ = ["key_changes", "merge_sink", "message_sink", "noted", "sink_files", "table_sink"]
