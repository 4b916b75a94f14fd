"""Converts Arrow tables to DataFrames of pandas and polars."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from freshviews.tracebacks import ends_at_the_call


class Frames:
    """The base of what has rows as an Arrow table: other libraries get them from this table."""

    def to_arrow(self) -> pa.Table:
        """The rows as one Arrow table."""
        raise NotImplementedError

    @ends_at_the_call
    def to_pandas(self) -> Any:
        """Return the table of ``to_arrow`` as a pandas DataFrame.

        Where a DATE is outside the years 1 to 9999, dates are ``datetime64``.

        Returns
        -------
        pandas.DataFrame

        Examples
        --------
        >>> db.view("by_part").to_pandas()["qty"].tolist()
        [3, 5]
        """
        return pandas_of(self.to_arrow())

    @ends_at_the_call
    def to_polars(self) -> Any:
        """Return the table of ``to_arrow`` as a polars DataFrame.

        Returns
        -------
        polars.DataFrame

        Examples
        --------
        >>> db.view("by_part").to_polars().shape
        (2, 2)
        """
        return polars_of(self.to_arrow())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The rows of ``to_arrow``, by Arrow's PyCapsule interface: polars, DuckDB and pyarrow read them by it."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


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
