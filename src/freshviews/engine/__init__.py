"""The engine: tables and views with their data, batches, versions, subscribers, durability."""

__all__ = ["change", "codes", "commit", "database", "durable", "handles", "views"]
