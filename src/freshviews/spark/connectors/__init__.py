"""Declarations of Spark's sources and sinks, and of the messages that some of them carry. They are data only."""

__all__ = ["declarations", "message_format", "polls", "secrets"]
