"""Declares Spark's sources and sinks, and the messages that some of them carry."""

__all__ = ["by_arrow", "declarations", "message_format", "polls", "secrets"]
