"""Describes the sources and sinks of Spark that freshviews knows, and the forms of messages.

Some sources and sinks, such as Kafka, carry messages, which have a key and a value.
"""

__all__ = ["by_arrow", "declarations", "message_format", "polls", "secrets"]
