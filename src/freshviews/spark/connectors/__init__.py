"""Describes the sources and sinks of Spark that freshviews knows, and the messages in some of them."""

__all__ = ["by_arrow", "declarations", "message_format", "polls", "secrets"]
