"""The engine: tables and views with their data, batches, versions, subscribers, durability."""

__all__ = ["batch", "change", "codes", "database", "durable", "view", "views"]
