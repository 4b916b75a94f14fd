"""The hash table that holds relations and views, its secondary indexes, and the stored base table."""

__all__ = [
    "ahead",
    "balance",
    "base_reads",
    "base_store",
    "index",
    "memo",
    "pending",
    "renew",
    "row_order",
    "slots",
    "sum_table",
    "table",
]
