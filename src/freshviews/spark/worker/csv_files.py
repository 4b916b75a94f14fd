"""Reads CSV files by Arrow, if Arrow and Spark read the same values from them.

For a file with quotes, backslashes or unusual values, ``NotByArrow`` is raised, and Spark reads the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from freshviews.records import dataclass
from freshviews.spark.worker.arrow_kinds import NotByArrow, arrow_kind, check_times
from freshviews.spark.worker.rows import CORRUPT

_MOST_BYTES = 256 << 20
"""Spark reads larger files in parts."""
_PACKED = (".gz", ".bz2", ".deflate", ".lz4", ".snappy", ".zst")
"""Ends of the names of files that Spark decompresses."""
_OTHER = (b'"', b"\\", b"\r", b"\0", b"\xef\xbb\xbf")
"""Text that Spark may read otherwise: quotes, escapes, ends of lines other than a newline, a mark of the encoding."""
_TEXTS: Mapping[str, str] = {
    "boolean": "true|false",
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), "-?[0-9]{1,19}"),
    **dict.fromkeys(("float", "double"), r"-?[0-9]{1,15}(\.[0-9]{1,15})?"),
    "date": "[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "timestamp_ntz": "[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}",
}
"""By type, the texts that Arrow reads to the value of Spark. A text that is not of the type is none of them."""


@dataclass(frozen=True)
class CsvForm:
    """The form of CSV files: the columns in their order, and the separator. ``header``: a first line has the names."""

    columns: tuple[str, ...]
    separator: str
    header: bool


def read_csv(path: str, columns: Mapping[str, str], form: CsvForm, threads: bool) -> pa.Table:
    """The rows of a file, in the types of Spark's Arrow batches. Raises NotByArrow."""
    try:
        data = bytes_of(path)
        if any(other in data for other in _OTHER):
            raise NotByArrow(f"{path} has quotes, backslashes, carriage returns or a byte order mark")
        end = data.find(b"\n")
        if form.header and data[: max(end, 0)].decode() != form.separator.join(form.columns):
            raise NotByArrow(f"{path} has a header other than {form.separator.join(form.columns)}")
        if not data or (form.header and end == len(data) - 1):
            return pa.table({name: pa.nulls(0, arrow_kind(kind)) for name, kind in columns.items()})
        names = list(form.columns)
        if len(names) == 1:
            raise NotByArrow(f"{path} has only one column, so Spark may read an empty line as a row")
        texts = csv.read_csv(
            pa.BufferReader(data),
            csv.ReadOptions(use_threads=threads, column_names=names, skip_rows=int(form.header)),
            # Empty lines are skipped as by Spark. Lines of spaces, which Spark skips, too, have too few columns here.
            csv.ParseOptions(delimiter=form.separator, quote_char=False, ignore_empty_lines=True),
            csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                include_columns=[name for name in columns if name != CORRUPT],
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
        found = {name: column_of(path, texts, name, kind) for name, kind in columns.items()}
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise NotByArrow(f"{path} cannot be read by Arrow: {error}") from error
    return pa.table(found)


def bytes_of(path: str) -> bytes:
    """The bytes of a text file. Raises NotByArrow, OSError."""
    if Path(path).stat().st_size > _MOST_BYTES:
        raise NotByArrow(f"{path} has more than {_MOST_BYTES} bytes")
    if Path(path).suffix in _PACKED:
        raise NotByArrow(f"{path} has the name of a compressed file")
    return Path(path).read_bytes()


def column_of(path: str, rows: pa.Table, name: str, kind: str) -> pa.ChunkedArray | pa.Array:
    """A column of a text file in the type of Spark's Arrow batches, from its texts or its values. Raises NotByArrow,
    ArrowException."""
    if name == CORRUPT:
        return pa.nulls(len(rows), pa.string())
    column, wanted = rows.column(name), arrow_kind(kind)
    if kind == "string" or column.type != pa.string():
        return column.cast(wanted)
    pattern = _TEXTS.get(kind, "")
    if isinstance(wanted, pa.Decimal128Type):
        whole, part = wanted.precision - wanted.scale, wanted.scale
        pattern = f"-?[0-9]{{1,{whole}}}" + (rf"(\.[0-9]{{1,{part}}})?" if part else "") if whole else ""
    if not pc.all(pc.match_substring_regex(column, f"^({pattern})$"), min_count=0).as_py():
        raise NotByArrow(f"{path}: column {name} has a text that Spark may read differently")
    found = column.cast(wanted)
    check_times(path, name, found)
    return found


def read_as_text(kind: str) -> bool:
    """Whether columns of a type are read here."""
    return kind == "string" or kind in _TEXTS or kind.startswith("decimal(")
