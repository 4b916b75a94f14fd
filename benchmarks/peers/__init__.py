"""The peers, one per file; ``benchmarks.measuring.strategies`` lists them by name."""

__all__ = [
    "duckdb_sql",
    "flink_sql",
    "numpy_arrays",
    "pathway_sql",
    "plain_order_book",
    "plain_python",
    "programs",
    "spark_sql",
]
