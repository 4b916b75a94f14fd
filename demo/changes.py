"""The contents of a view, summed up from the files of changes that its sink writes, as any consumer would compute
them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

MULTIPLICITY = "_multiplicity"
VERSION = "_version"


class Followed:
    """The contents of a view, from the files of its folder read so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.came = 0
        """Rows inserted by the files that were read last; ``went``: rows deleted by them."""
        self.went = 0
        self._read: set[str] = set()
        self._rows: pa.Table | None = None

    def read_on(self) -> None:
        """Read the new files. Raises ValueError if the multiplicity of a row becomes negative."""
        files = [path for path in sorted(self.folder.glob("*.parquet")) if path.name not in self._read]
        self._read.update(path.name for path in files)
        tables = [_read(path) for path in files]
        signs = [table[MULTIPLICITY] for table in tables]
        self.came = sum(pc.sum(sign.filter(pc.greater(sign, 0))).as_py() or 0 for sign in signs)
        self.went = -sum(pc.sum(sign.filter(pc.less(sign, 0))).as_py() or 0 for sign in signs)
        if tables:
            before = [] if self._rows is None else [self._rows]
            self._rows = _summed(pa.concat_tables([*before, *tables]))
            if pc.any(pc.less(self._rows[MULTIPLICITY], 0)).as_py():
                raise ValueError(f"{self.folder}: the changes delete a row that they have not inserted")

    @property
    def count(self) -> int:
        """Rows of the view."""
        return 0 if self._rows is None else pc.sum(self._rows[MULTIPLICITY]).as_py() or 0

    def greatest(self, column: str, count: int) -> list[dict[str, Any]]:
        """The first rows by a column, greatest first."""
        if self._rows is None:
            return []
        names = [name for name in self._rows.column_names if name != MULTIPLICITY]
        # Other columns break ties, so the order of the shown rows is stable.
        order = [(column, "descending"), *((name, "ascending") for name in names if name != column)]
        return list(self._rows.sort_by(order).select(names).slice(0, count).to_pylist())

    def rows(self) -> list[tuple[Any, ...]]:
        """All rows, each repeated by its multiplicity."""
        if self._rows is None:
            return []
        rows = zip(*(column.to_pylist() for column in self._rows.columns), strict=True)
        return [tuple(row) for *row, times in rows for _ in range(times)]


def _read(path: Path) -> pa.Table:
    rows = pa.parquet.read_table(path).drop_columns([VERSION])
    # Without the columns' NOT NULL, which summing loses.
    return pa.table(rows.columns, names=rows.column_names)


def _summed(rows: pa.Table) -> pa.Table:
    names = [name for name in rows.column_names if name != MULTIPLICITY]
    found = rows.group_by(names).aggregate([(MULTIPLICITY, "sum")])
    found = found.rename_columns([*names, MULTIPLICITY])
    return found.filter(pc.not_equal(found[MULTIPLICITY], 0))
