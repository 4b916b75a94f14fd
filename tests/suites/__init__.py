"""Queries of public benchmarks, written in standard SQL, over random streams, beside DuckDB."""
