"""Describes the sources and sinks of Spark that freshviews knows.

Some of them, such as Kafka, carry messages, which have a key and a value. The forms of messages are described, too.
"""

__all__ = ["by_arrow", "declarations", "message_format", "polls", "secrets"]
