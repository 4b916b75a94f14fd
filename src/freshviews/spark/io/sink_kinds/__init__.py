"""Writes versions to sinks. Each kind of sink has a module: files, messages, database tables, lakehouse tables."""

__all__ = ["key_changes", "merge_sink", "message_sink", "noted", "sink_files", "table_sink"]
