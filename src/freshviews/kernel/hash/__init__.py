"""The hash table that holds relations and views, its secondary indexes, and the stored base table."""

__all__ = ["ahead", "balance", "base_store", "index", "memo", "pending", "renew", "row_order", "sum_table", "table"]
