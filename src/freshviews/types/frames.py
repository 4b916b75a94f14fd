"""Converts Arrow tables to DataFrames of pandas and polars."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def pandas_of(rows: pa.Table) -> Any:
    """Rows as a pandas DataFrame. Where a DATE is outside the years 1 to 9999, dates are ``datetime64``."""
    try:
        return rows.to_pandas()
    except (ValueError, OverflowError):
        return rows.to_pandas(date_as_object=False)


def polars_of(rows: pa.Table) -> Any:
    """Rows as a polars DataFrame."""
    import polars

    return polars.from_arrow(rows)
