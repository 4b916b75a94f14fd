"""Files that workers read by Arrow, beside the same files read by Spark."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed; pip install 'freshviews[spark]'")

from freshviews.cells import Role
from freshviews.errors import FreshviewsError
from freshviews.spark.driver import run, version
from freshviews.spark.pipeline import Pipeline
from freshviews.spark.reading.contents import contents, latest
from freshviews.spark.state.stores.addresses import store_of
from freshviews.spark.worker.arrow_kinds import NotByArrow, arrow_kind
from freshviews.spark.worker.csv_files import CsvForm
from freshviews.spark.worker.files import Files, rows_of_files
from freshviews.spark.worker.json_files import read_json
from freshviews.spark.worker.spark_hash import hashes

pytestmark = pytest.mark.spark

MOMENTS = [datetime(2026, 1, 5, 12, 30, 0, 123000), None, datetime(1900, 1, 1), datetime(9999, 12, 31, 23, 59, 59)]
LARGE = {
    "tiny": pa.array([-128, None, 127, 0], pa.int8()),
    "small": pa.array([-(2**15), None, 2**15 - 1, 0], pa.int16()),
    "whole": pa.array([-(2**31), None, 2**31 - 1, 0], pa.int32()),
    "big": pa.array([-(2**63), None, 2**63 - 1, 0], pa.int64()),
    "single": pa.array([float("nan"), None, -0.0, 1.1], pa.float32()),
    "real": pa.array([float("nan"), None, -0.0, float("-inf")], pa.float64()),
    "text": pa.array(["", None, "a\n\t\"'€😀", "x" * 5000]),
    "truth": pa.array([True, None, False, True]),
    "day": pa.array([date(1582, 10, 15), None, date(9999, 12, 31), date(1970, 1, 1)]),
    "money": pa.array([Decimal("-12345678.90"), None, Decimal("0.01"), Decimal(0)], pa.decimal128(10, 2)),
    "fine": pa.array([Decimal("-0.1"), None, Decimal(10) ** 17, Decimal(0)], pa.decimal128(38, 18)),
    "moment": pa.array(MOMENTS, pa.timestamp("us")),
    "instant": pa.array(MOMENTS, pa.timestamp("us", "UTC")),
    "brief": pa.array(MOMENTS, pa.timestamp("ms")),
}
TABLE = pa.table(LARGE)
SCHEMA = (
    "tiny tinyint, small smallint, whole int, big bigint, single float, real double, text string, truth boolean, "
    "day date, money decimal(10,2), fine decimal(38,18), moment timestamp_ntz, instant timestamp, brief timestamp_ntz"
)
WIDER = "tiny bigint, small int, whole bigint, single double, big bigint"


def column(values: Any, kind: pa.DataType | None = None) -> pa.Table:
    return pa.table({"c": pa.array(values, kind)})


def written(table: pa.Table, **options: Any) -> Callable[[Path], None]:
    return lambda path: pq.write_table(table, path, **options)


def by_rows(*tables: pa.Table) -> Callable[[Path], None]:
    """A file with a row group per table."""

    def write(path: Path) -> None:
        with pq.ParquetWriter(path, tables[0].schema) as writer:
            for table in tables:
                writer.write_table(table)

    return write


FILES: dict[str, tuple[str, Callable[[Path], None], bool | None]] = {
    "all types": (SCHEMA, written(TABLE), True),
    "reordered and more columns": ("day date, big bigint", written(TABLE), True),
    "narrow integers as wider ones": (WIDER, written(TABLE), True),
    "gzip": (SCHEMA, written(TABLE, compression="gzip"), True),
    "zstd": (SCHEMA, written(TABLE, compression="zstd"), True),
    "uncompressed, no dictionary": (SCHEMA, written(TABLE, compression="none", use_dictionary=False), True),
    "pages of version 2": (SCHEMA, written(TABLE, data_page_version="2.0"), None),
    "many row groups": ("c bigint", by_rows(*(column(range(n, n + 3)) for n in range(9))), True),
    "no rows": (SCHEMA, written(TABLE.slice(0, 0)), True),
    "only NULLs": ("c bigint", written(column([None, None], pa.int64())), True),
    "required columns": (
        "c bigint", written(column([1, 2]).cast(pa.schema([pa.field("c", pa.int64(), nullable=False)]))), True
    ),
    "decimals as integers": (SCHEMA, written(TABLE, store_decimal_as_integer=True), True),
    "large strings": ("c string", written(column(["a", None], pa.large_string())), True),
    "without the Arrow schema": (SCHEMA, written(TABLE, store_schema=False), True),
    "brotli": ("c bigint", written(column([1]), compression="brotli"), False),
    "lz4": ("c bigint", written(column([1]), compression="lz4"), False),
    "delta encoded": ("c bigint", written(column([1]), use_dictionary=False, column_encoding="DELTA_BINARY_PACKED"),
                      False),
    "split bytes": ("c double", written(column([1.5]), use_dictionary=False, column_encoding="BYTE_STREAM_SPLIT"),
                    False),
    "of version 1.0": ("whole int, big bigint, text string, day date", written(TABLE, version="1.0"), True),
    "times of version 1.0": ("moment timestamp_ntz", written(TABLE, version="1.0"), None),
    "INT96": (
        "moment timestamp", written(pa.table({"moment": MOMENTS[:2]}), use_deprecated_int96_timestamps=True), False
    ),
    "nanoseconds": ("c timestamp_ntz", written(column(MOMENTS[:2], pa.timestamp("ns"))), False),
    "instants as times without a zone": ("instant timestamp_ntz", written(TABLE), False),
    "times without a zone as instants": ("moment timestamp", written(TABLE), False),
    "instants of another zone": ("c timestamp", written(column(MOMENTS, pa.timestamp("us", "Europe/Berlin"))), None),
    "days before 1582": ("c date", written(column([date(1582, 10, 14)])), False),
    "times before 1900": ("c timestamp_ntz", written(column([datetime(1899, 12, 31)], pa.timestamp("us"))), False),
    "a missing column": ("big bigint, lacking int", written(TABLE), False),
    "a name in another case": ("BIG bigint", written(TABLE), False),
    "two names in different case": ("c bigint", written(pa.table({"c": [1], "C": [2]})), False),
    "another scale": ("money decimal(10,3)", written(TABLE), False),
    "another precision": ("money decimal(12,2)", written(TABLE), False),
    "wider than the column": ("big int", written(TABLE), False),
    "integers as doubles": ("whole double", written(TABLE), False),
    "integers as texts": ("whole string", written(TABLE), False),
    "unsigned": ("c int", written(column([1], pa.uint16())), False),
    "a dictionary": ("c string", written(pa.table({"c": pa.array(["a", "b"]).dictionary_encode()})), False),
    "bytes as texts": ("c string", written(column([b"a"], pa.binary())), False),
    "a struct": ("c bigint", written(pa.table({"c": [{"a": 1}]})), False),
    "a list": ("c bigint", written(pa.table({"c": [[1]]})), False),
    "a nested column of the name": ("`c.a` bigint", written(pa.table({"c": [{"a": 1}]})), False),
    "a column with a dot": ("`c.a` bigint", written(pa.table({"c.a": [1]})), None),
    "not parquet": ("c bigint", lambda path: path.write_text("c\n1\n") and None, False),
    "empty": ("c bigint", lambda path: path.write_bytes(b"") and None, False),
    "cut off": ("c bigint", lambda path: path.write_bytes(b"PAR1" * 100) and None, False),
}  # fmt: skip
"""By name: the schema with which Spark reads a file, what writes it, and whether workers read it (None: they may)."""


def read_by_worker(path: Path, schema: Any) -> pa.Table:
    columns = {field.name: field.dataType.simpleString() for field in schema.fields}
    role = Role("t", "t", 1)
    found = [rows for _, _, rows in rows_of_files([Files((str(path),), columns, 0, (role,))])]
    if not found:
        return None
    return pa.Table.from_batches(found)


@pytest.mark.parametrize("name", FILES)
def test_workers_and_spark_read_the_same_rows_from_parquet(name: str, spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import types as T

    text, write, expected = FILES[name]
    path, schema = tmp_path / "f.parquet", T.StructType.fromDDL(text)
    write(path)
    try:
        found = read_by_worker(path, schema)
    except NotByArrow:
        assert not expected
        return
    assert expected is not False
    kinds = [f"`{one.name}`" if one.dataType != T.TimestampType() else f"CAST(`{one.name}` AS timestamp_ntz)"
             for one in schema.fields]  # fmt: skip
    wanted = spark.read.schema(schema).parquet(str(path)).selectExpr(*kinds).toArrow()
    assert wanted.num_rows == (0 if found is None else found.num_rows)
    if found is not None:
        assert [field.type for field in found.schema] == [field.type for field in wanted.schema]
        for one, other in zip(found.columns, wanted.columns, strict=True):
            assert str(one.to_pylist()) == str(other.to_pylist())


MICROS = {"spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS"}


@pytest.mark.parametrize(
    ("settings", "read"),
    [({}, False), (MICROS, True), ({**MICROS, "spark.sql.parquet.writeLegacyFormat": "true"}, True)],
    ids=["times as INT96", "times as microseconds", "legacy format"],
)
def test_workers_and_spark_read_the_same_rows_from_files_that_spark_wrote(
    settings: dict[str, str], read: bool, spark: Any, tmp_path: Path
) -> None:
    frame = spark.createDataFrame(TABLE.select([name for name in LARGE if name != "brief"]))
    before = {name: spark.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        frame.coalesce(1).write.parquet(str(tmp_path / "out"))
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
    (path,) = (tmp_path / "out").glob("*.parquet")
    if not read:
        with pytest.raises(NotByArrow):
            read_by_worker(path, frame.schema)
        return
    found = read_by_worker(path, frame.schema)
    wanted = spark.read.schema(frame.schema).parquet(str(path))
    wanted = wanted.withColumns({name: wanted[name].cast("timestamp_ntz") for name in ("moment", "instant")})
    assert str(found.to_pylist()) == str(wanted.toArrow().to_pylist())


def test_spark_counts_the_rows_that_workers_read(spark: Any, tmp_path: Path) -> None:
    for name, rows in (("a", 3), ("b", 5)):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({"k": list(range(rows))}), tmp_path / name / "1.parquet")
    (tmp_path / "script.sql").write_text(
        "CREATE STREAMING TABLE a (k BIGINT) USING parquet OPTIONS (path 'a');"
        "CREATE STREAMING TABLE b (k BIGINT) USING parquet OPTIONS (path 'b');"
        "CREATE MATERIALIZED VIEW v AS SELECT COUNT(*) AS n FROM a JOIN b USING (k);"
    )
    query = Pipeline.from_script(spark, tmp_path / "script.sql").start(once=True)
    query.awaitTermination()
    progress = query.lastProgress
    assert progress is not None and progress["rows"] == {"a": 3, "b": 5}
    assert (progress["numInputRows"], [one["numInputRows"] for one in progress["sources"]]) == (8, [3, 5])


def test_workers_and_spark_compute_the_same_hashes_of_columns(spark: Any) -> None:
    random = np.random.default_rng(1)
    count = 500

    def some(values: Any, kind: pa.DataType) -> pa.Array:
        return pa.array([None if random.random() < 0.1 else value for value in values], kind)

    texts = ["".join(random.choice(list("abcü€😀 "), random.integers(0, 90))) for _ in range(count)]
    columns = {
        "bigint": some(random.integers(-(2**63), 2**63 - 1, count).tolist(), pa.int64()),
        "double": some(random.choice([0.0, -0.0, float("nan"), 1e300, -1.5], count).tolist(), pa.float64()),
        "date": some(random.integers(-(10**5), 10**5, count).tolist(), pa.int32()).cast(pa.date32()),
        "timestamp": some(random.integers(-(10**15), 10**15, count).tolist(), pa.int64()).cast(pa.timestamp("us")),
        "boolean": some(random.choice([True, False], count).tolist(), pa.bool_()),
        "string": some(texts, pa.string()),
    }
    frame = spark.createDataFrame(pa.table(columns))
    for kind, values in columns.items():
        value = f"IF({kind} = 0D, 0D, {kind})" if kind == "double" else kind
        for seed in (0, 1, 13):
            wanted = [row[0] for row in frame.selectExpr(f"xxhash64({seed}, {value})").collect()]
            assert hashes(seed, values, kind).tolist() == wanted
            assert hashes(seed, values.slice(7, 50), kind).tolist() == wanted[7:57]




CSV_SCHEMA = "n bigint, i int, d double, m decimal(6,2), t string, b boolean, y date, s timestamp_ntz"
TEXTS = {
    "n": ["", "0", "-5", "007", "123456789012345678", "1234567890123456789", "9223372036854775808", "+5", " 5", "5 ",
          "1.0", "1e3", "0x1F", "٣", "null", "--5", "-", "1_000"],
    "i": ["", "1", "-1", "2147483647", "2147483648", "00", "5L", "0b1", "1,"],
    "d": ["", "1.5", "-0", "0.1", "1e5", "NaN", "Infinity", "-inf", ".5", "5.", "1d", "1f", "0x1p3", "1,5", "1.5 ",
          "123456789012345", "1234567890123456789", "0.123456789012345"],
    "m": ["", "1", "-1.5", "9999.99", "10000", "1.234", "1.2e1", "01.10", ".5", "1.", "+1"],
    "t": ["", "a", " a", "a ", " ", "€", "a'b", 'a"b', '"a"', "a\\b", "a\tb", "null", "NULL", "#a", "-", "\u00a0",
          "a\x00b", "a\u2028b", "x" * 3000],
    "b": ["", "true", "false", "TRUE", "True", "t", "1", "yes", "true "],
    "y": ["", "2026-01-05", "1582-10-14", "1582-10-15", "1970-01-01", "2026-02-30", "2026-1-5", "20260105",
          "9999-12-31", "0001-01-01", "2026-01-05T00:00:00", "2026-01-05 ", "12026-01-05", "2026-01"],
    "s": ["", "2026-01-05 12:30:00", "2026-01-05T12:30:00", "2026-01-05", "2026-01-05 12:30", "1899-12-31 00:00:00",
          "2026-01-05T12:30:00Z", "2026-01-05 12:30:00.5", "2026-01-05T24:00:00", "2026-01-05 12:30:60",
          "2026-02-29 00:00:00", "2024-02-29 23:59:59", "9999-12-31 23:59:59"],
}
"""Texts of each column, usual ones and others."""
BODIES = ["", "\n", "1\n", "\n\n", " \n", "1,1,1,1,a,true,2026-01-05,\r\n", ",,,,,,,", ",,,,,,,\n,,,,,,,", ",,,,,,,,\n",
          ",,,,,,\n", ",,,,a,,,\n\n,,,,b,,,\n", "\n,,,,a,,,\n", ",,,,a,,,\n \t\n,,,,b,,,\n", ',,,,"a\nb",,,\n',
          ",,,,a,,,\r,,,,b,,,\r", "\ufeff,,,,a,,,\n", ",,,,a,,,\n\x0b\n"]  # fmt: skip


def read_csv_by_worker(path: Path, schema: Any, separator: str, header: bool) -> pa.Table:
    columns = {one.name: one.dataType.simpleString() for one in schema.fields}
    form = CsvForm(tuple(name for name in columns if name != "_corrupt_record"), separator, header)
    given = Files((str(path),), columns, 0, (Role("t", "t", 1),), form)
    empty = pa.table({name: pa.nulls(0, arrow_kind(kind)) for name, kind in columns.items()})
    return pa.concat_tables([empty, *(pa.Table.from_batches([rows]) for _, _, rows in rows_of_files([given]))])


@pytest.mark.parametrize(("separator", "header"), [(",", True), (";", False)])
def test_workers_and_spark_read_the_same_rows_from_csv(
    separator: str, header: bool, spark: Any, tmp_path: Path
) -> None:
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    schema = T.StructType.fromDDL(f"{CSV_SCHEMA}, _corrupt_record string")
    names = schema.names[:-1]
    random = np.random.default_rng(3)
    usual = {name: texts[:2] for name, texts in TEXTS.items()}
    bodies = [body.replace(",", separator) for body in BODIES]
    for name, texts in TEXTS.items():
        for text in texts:
            lines = [[str(random.choice(usual[one])) for one in names] for _ in range(3)]
            lines[1][names.index(name)] = text
            bodies.append("".join(separator.join(line) + "\n" for line in lines))
    for number, body in enumerate(bodies):
        first = separator.join(names) + "\n" if header else ""
        (tmp_path / f"{number}.csv").write_bytes((first + body).encode())
    options = {"sep": separator, "header": str(header).lower(), "mode": "PERMISSIVE", "enforceSchema": str(not header),
               "columnNameOfCorruptRecord": "_corrupt_record"}  # fmt: skip
    frame = spark.read.format("csv").options(**options).schema(schema).load(str(tmp_path))
    wanted: dict[int, list[Any]] = {number: [] for number in range(len(bodies))}
    # Python has no year 12026.
    for row in frame.select("*", "_metadata.file_name").withColumn("y", F.unix_date("y")).toArrow().to_pylist():
        wanted[int(row.pop("file_name").split(".")[0])].append(row)
    read = 0
    for number, body in enumerate(bodies):
        try:
            found = read_csv_by_worker(tmp_path / f"{number}.csv", schema, separator, header)
        except NotByArrow:
            continue
        read += 1
        found = found.set_column(names.index("y"), "y", found.column("y").cast(pa.int32()))
        assert str(found.to_pylist()) == str(wanted[number]), body
    assert read > len(bodies) / 4


def test_workers_leave_unusual_csv_files_to_spark(
    spark: Any, tmp_path: Path
) -> None:
    from pyspark.sql import types as T

    schema = T.StructType.fromDDL("a bigint, b string")
    for data in (b"b,a\n1,x\n", b"A,b\n1,x\n", b"a,b,c\n1,x,y\n", b"\xef\xbb\xbfa,b\n1,x\n", b"a,b\n1,\xff\n", b"",
                 b"a;b\n1;x\n"):  # fmt: skip
        (tmp_path / "f.csv").write_bytes(data)
        with pytest.raises(NotByArrow):
            read_csv_by_worker(tmp_path / "f.csv", schema, ",", True)
    with gzip.open(tmp_path / "f.csv.gz", "wb") as file:
        file.write(b"a,b\n1,x\n")
    with pytest.raises(NotByArrow):
        read_csv_by_worker(tmp_path / "f.csv.gz", schema, ",", True)


JSON_SCHEMA = f"{CSV_SCHEMA}, h smallint, k tinyint, f float, q decimal(38,18), `é.x` string"
NUMBERS = [
    "0", "-0", "-0.0", "0e1", "1", "-5", "007", "12.0", "12.5", "1e2", "1E-2", "-1.5e+1", "1e400", "1e99", "1e-46",
    "3.5e38", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "2147483647", "2147483648",
    "-32769", "127", "128", "9999.99", "10000", "12345", "1.234", "1.230", "0.00000", "1e22", "12345678901234567890",
    "12345678901234567890.123456789012345678", "100000000000000000000", "1234567890123456789012345678901234567",
    "0.1234567890123456789", "1.00000017881393432617187499", "9007199791611905", "NaN", "Infinity", "Inf", "+INF",
    ".5", "5.", "+5", "0x1F", "1_000", "--5", "-", "1d", '"1"', '"1.5"', '"NaN"', '"1e2"', '" 1"', '"1 "', '"+1"',
    '".5"', '"5."', '"1,5"', '"٣"', '"1d"', '"12345"', '"00001"', '"1e30"', '"12345678e35"',
    '"99999999999999999999999999999999999999"', '"1234567890123456789012345678901234567"', f'"{"9" * 90}"',
]  # fmt: skip
OTHERS = [
    "null", "true", "false", "True", '"true"', "[]", "{}", '{"a":1}', "[1, 2]", '[{"a":"b"}]', "nul", "", "/*x*/1",
    '""', '"a"', '" a"', '"€😀"', r'"\"\\\/\b\f\n\r\t"', r'"\u00e9\u0000"', r'"\ud83d\uDE00"', r'"\ud83d"', r'"\ude00"',
    r'"\ud83d\u0041"', r'"\x41"', r'"\u12"', '"a\tb"', '"a\x7fb"', '"a\u2028b"', "'a'", "a", f'"{"x" * 3000}"', '"}{"',
    '"a:b, c"',
]  # fmt: skip
TIMES = [*(f'"{text}"' for text in TEXTS["y"] + TEXTS["s"]), r'"2026-01-05\n"', "20260105", "0", *OTHERS[:10]]
VALUES = {
    **dict.fromkeys(["n", "d", "f", "m", "q"], NUMBERS + OTHERS[:15]),
    **dict.fromkeys(["k", "h", "i"], NUMBERS[:30]),
    **dict.fromkeys(["t", "b"], OTHERS + NUMBERS[:6]),
    **dict.fromkeys(["y", "s"], TIMES),
}
"""JSON of the values of each column."""
DOCUMENTS = [
    "", "\n", "\n\n", " \n", "{}", "{}\n{}", '{"t":"a"}', '{"t":"a"}\n\n{"t":"b"}\n', '\n{"t":"a"}\n',
    '{"t":"a"}\n \n{}', '{"t":"a"}\r\n{"t":"b"}\r\n', '{"t":"a"}\r{"t":"b"}', ' {"t":"a"}', '{"t":"a"} ',
    '\ufeff{"t":"a"}', '{"t":"a"}{"t":"b"}', '{"t":"a"},{"t":"b"}', '[{"t":"a"},{"t":"b"}]', "[]", '{"t":\n"a"}\n',
    '{"t":"a"', '{"t":"a"}}', '{{"t":"a"}', '{"t":"a",}', '{,"t":"a"}', '{"t":"a",,"n":1}', '{"t" "a"}',
    '{"t":"a" "n":1}', '{"t":}', '{t:"a"}', '{"t":"a"} x', '{"t":"a"}//c', "null", "1", '"a"', "x",
    '{"t":"a","t":"b"}', '{"t":null,"n":1,"t":"b"}', '{"x":1,"x":2,"t":"a"}', '{"T":"a"}', '{"t":"a","T":"b"}',
    '{"N":1,"n":2}', '{" t":"a"}', r'{"\u0074":"a"}', '{"":1,"t":"a"}', '{"é.x":"a"}', '{"x":NaN,"t":"a"}',
    '{"x":Inf,"t":"a"}', '{"x":01,"t":"a"}', '{"x":1e999,"t":"a"}', r'{"x":"\ud800","t":"a"}', '{"x":\t1,"t":"a"}',
    '{"x":tru,"t":"a"}', '{"x":truefalse,"t":"a"}', '{"x":1-2,"t":"a"}', '{"x":[1 2],"t":"a"}', '{"x":[1,],"t":"a"}',
    '{"x":[1},"t":"a"}', '{"x":{"y"},"t":"a"}', '{"x":{1:2},"t":"a"}', '{"x":["y":1],"t":"a"}',
    '{"x":{"y":1,"y":2},"t":"a"}', '{"x":{"t":"b"},"t":"a"}', '{"x":[{"t":"b"}]}', '{"x":[[{"y":[1]}]],"t":"a"}',
    f'{{"x":{"[" * 1200}{"]" * 1200},"t":"a"}}', f'{{"{"x" * 60000}":1,"t":"a"}}', f'{{"x":{"1" * 1500},"t":"a"}}',
    f'{{"t":"{"x" * 2_000_000}"}}', '{"_corrupt_record":"x","t":"a"}', '{"_corrupt_record":1}',
    '{ "t" : "a" , "n" : 1 }', '{"t":"a"}\x0b\n', '{"t":"a"}\x00', '{"x":{}\n{}}', '{"x":[{}\n,{}]}',
    '{"n":1}\n{"n":"a"}\n{"n":2}', '{"t":"a"}\n{"t"',
]  # fmt: skip
BYTES = [b'{"t":"\xff"}', b'{"x":"\xff","t":"a"}', b'{"t":"\xed\xa0\x80"}', b'{"t":"\xc0\xaf"}',
         '{"t":"a"}'.encode("utf-16"), '{"t":"a"}'.encode("utf-32-be"), gzip.compress(b'{"t":"a"}')]  # fmt: skip


def test_workers_and_spark_read_the_same_rows_from_json(spark: Any, tmp_path: Path) -> None:
    from pyspark.sql import types as T

    schema = T.StructType.fromDDL(f"{JSON_SCHEMA}, _corrupt_record string")
    columns = {one.name: one.dataType.simpleString() for one in schema.fields}
    usual = {"n": "1", "t": '"x"', "b": "true", "y": '"2026-01-05"', "s": '"2026-01-05 01:02:03"', "q": "0.1"}
    bodies = [*(document.encode() for document in DOCUMENTS), *BYTES]
    for name, values in VALUES.items():
        for value in values:
            rows = [{**usual, name: value} if number == 1 else usual for number in range(3)]
            lines = ["{" + ",".join(f'"{key}":{value}' for key, value in row.items()) + "}\n" for row in rows]
            bodies.append("".join(lines).encode())
    read: dict[int, pa.Table] = {}
    for number, body in enumerate(bodies):
        path = tmp_path / f"{number}.json"
        path.write_bytes(body)
        try:
            read[number] = read_json(str(path), columns, number % 2 == 0)
        except NotByArrow:
            path.unlink()
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt_record"}
    frame = spark.read.format("json").options(**options).schema(schema).load(str(tmp_path))
    wanted: dict[int, list[Any]] = {number: [] for number in read}
    for row in frame.select("*", "_metadata.file_name").toArrow().to_pylist():
        wanted[int(row.pop("file_name").split(".")[0])].append(row)
    for number, found in read.items():
        assert str(found.to_pylist()) == str(wanted[number]), bodies[number][:200]
    taken = [bodies[number] for number in read]
    for body in (b"", b"{}\n{}", b'{"T":"a"}', '{"é.x":"a"}'.encode(), b'{"x":[[{"y":[1]}]],"t":"a"}'):
        assert body in taken
    assert len(read) > len(bodies) / 5


def test_workers_leave_compressed_json_files_to_spark(tmp_path: Path) -> None:
    for name, read in (("f.json", True), ("f.json.gz", False), ("f.bz2", False)):
        (tmp_path / name).write_text('{"a":1}')
        with contextlib.nullcontext() if read else pytest.raises(NotByArrow):
            assert read_json(str(tmp_path / name), {"a": "int"}, False).to_pylist() == [{"a": 1}]


def test_json_rows_without_a_field_get_the_default_of_its_column(spark: Any, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.json").write_text('{"a":1}\n{"a":2,"b":null}\n{"a":3,"b":4}\n')
    (tmp_path / "script.sql").write_text(
        "CREATE STREAMING TABLE t (a INT, b INT DEFAULT 7) USING json OPTIONS (path 'in');"
        "CREATE MATERIALIZED VIEW v AS SELECT a, b FROM t;"
    )
    Pipeline.from_script(spark, tmp_path / "script.sql").start(once=True).awaitTermination()
    store = store_of(tmp_path / "script.checkpoint")
    rows = contents(store, latest(store), "v").to_pylist()
    assert sorted((row["a"], row["b"]) for row in rows) == [(1, 7), (2, None), (3, 4)]


SCRIPT = """
CREATE STREAMING TABLE people (id BIGINT PRIMARY KEY, shop STRING NOT NULL, day DATE, seen TIMESTAMP)
  USING {form} OPTIONS (path '{folder}/people', changes 'upsert');
CREATE STREAMING TABLE sales (id INT, shop STRING, price DECIMAL(9, 2), weight DOUBLE)
  USING {form} OPTIONS (path '{folder}/sales', maxFilesPerTrigger '2' {bad_rows});
CREATE MATERIALIZED VIEW all_people AS SELECT id, shop, day, seen FROM people;
CREATE MATERIALIZED VIEW by_shop AS SELECT shop, COUNT(*) AS n, SUM(price) AS price, MAX(weight) AS most
  FROM sales GROUP BY shop;
CREATE MATERIALIZED VIEW joined AS SELECT p.day, COUNT(*) AS n FROM sales s JOIN people p ON s.id = p.id GROUP BY p.day;
"""


class Both:
    """A pipeline over one folder of input, once with workers that read files, once with Spark alone."""

    def __init__(
        self, spark: Any, folder: Path, patch: pytest.MonkeyPatch, cells: int, bad_rows: str = "", form: str = "parquet"
    ) -> None:
        self.spark, self.folder, self.patch, self.cells, self.form = spark, folder, patch, cells, form
        self.ways: list[bool] = []
        self._files, self._tried = run.files_for_workers, version._tried
        for name in ("people", "sales"):
            (folder / name).mkdir()
        for way in ("workers", "spark"):
            (folder / way).mkdir()
            given = f", bad_rows '{folder}/{way}/bad'" if bad_rows else ""
            (folder / way / "script.sql").write_text(SCRIPT.format(folder=folder, form=form, bad_rows=given))

    def put(self, table: str, name: str, rows: pa.Table, at: int) -> None:
        """A file of a time in seconds."""
        path = self.folder / table / f".{name}"
        if self.form == "json":
            path.write_text("".join(json.dumps(row, default=str) + "\n" for row in rows.to_pylist()))
        else:
            pq.write_table(rows, path)
        os.utime(path, (at, at))
        path.rename(path.with_name(name))

    def people(self, name: str, ids: list[int], shop: Any, at: int) -> None:
        moments = pa.array([datetime(2026, 1, 1, 0, 0, n % 60) for n in ids], pa.timestamp("us"))
        columns = {"id": ids, "shop": pa.array([shop] * len(ids), pa.string()), "seen": moments}
        days = pa.array([date(2026, 1, 1 + n % 3) if n % 5 else None for n in ids], pa.date32())
        self.put("people", name, pa.table({**columns, "day": days, "more": ids}), at)

    def sales(self, name: str, ids: list[int], at: int) -> None:
        prices = pa.array([Decimal(n) / 4 if n % 7 else None for n in ids], pa.decimal128(9, 2))
        shops = pa.array([f"shop {n % 4}" if n % 6 else None for n in ids])
        columns = {"id": pa.array(ids, pa.int32()), "shop": shops, "price": prices}
        self.put("sales", name, pa.table({**columns, "weight": [n / 3 for n in ids]}), at)

    def agree(self) -> tuple[Any, list[bool]]:
        """The outcome of both ways: the error, if there is one, the contents of the views and the bad rows; and
        for each job of the first way whether workers read the files."""
        said = [self._run(way) for way in ("workers", "spark")]
        assert said[0] == said[1]
        ways, self.ways = self.ways, []
        return said[0], ways

    def _run(self, way: str) -> Any:
        def tried(spark: Any, store: Any, given: Any, task: Any, *rest: Any) -> Any:
            if way == "workers" and (given is not None or task.files):
                self.ways.append(bool(task.files))
            return self._tried(spark, store, given, task, *rest)

        self.patch.setattr(run, "files_for_workers", self._files if way == "workers" else lambda *_: None)
        self.patch.setattr(version, "_tried", tried)
        error = None
        try:
            Pipeline.from_script(self.spark, self.folder / way / "script.sql", cells=self.cells).start(
                once=True
            ).awaitTermination()
        except FreshviewsError as found:
            error = str(found)
        store = store_of(self.folder / way / "script.checkpoint")
        made = latest(store)
        views = {name: sorted(map(str, contents(store, made, name).to_pylist())) for name in made.views}
        bad = [line for file in (self.folder / way).glob("bad/*") for line in file.read_text().splitlines()]
        return error, made.version, made.totals, views, sorted(bad)


@pytest.mark.parametrize("cells", [1, 3])
def test_workers_and_spark_make_the_same_versions_of_files(
    cells: int, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = Both(spark, tmp_path, monkeypatch, cells)
    # The later file counts, of files of one time the one with the greater name, in a file the later row.
    both.people("b ü%.parquet", [1, 2, 3, 3, 4], "b", 1_000)
    both.people("a.parquet", [1, 2, 5, 6, 7], "a", 1_000)
    both.people("0.parquet", [9, 1], "0", 2_000)
    both.people("c.parquet", [9, 7], "c", 500)
    for number in range(4):
        both.sales(f"{number}.parquet", list(range(number, 60, 3)), 1_000 + number)
    (error, *_, views, _), ways = both.agree()
    assert error is None and ways and all(ways) and len(views["all_people"]) == 8
    both.people("d.parquet", [2, 11], "d", 3_000)
    (error, *_), ways = both.agree()
    assert error is None and ways == [True]


def test_spark_reads_files_that_workers_leave(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = Both(spark, tmp_path, monkeypatch, 2)
    both.people("a.parquet", [1, 2, 3], "a", 1_000)
    both.sales("0.parquet", [1, 2], 1_000)
    both.put("sales", "1.parquet", pa.table({"id": [1], "price": [1.5]}), 2_000)
    both.put("sales", "2.parquet", pa.table({"id": pa.array([3], pa.int32()), "shop": ["old"]}), 2_000)
    both.agree()
    (tmp_path / "sales" / "1.parquet").unlink()
    both.sales("3.parquet", [1, 2, 3], 3_000)
    both.agree()


@pytest.mark.parametrize("cells", [1, 3])
def test_workers_and_spark_refuse_the_same_files(
    cells: int, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = Both(spark, tmp_path, monkeypatch, cells)
    both.people("a.parquet", [1, 2, 3], "a", 1_000)
    (error, *_), ways = both.agree()
    assert error is None and ways == [True]
    both.people("b.parquet", [4, 5, 6], "b", 2_000)
    both.people("c.parquet", [7, 8], None, 2_000)
    (error, *_), ways = both.agree()
    assert error is not None and "c.parquet, row 1" in error and ways == [True, False]


def test_workers_and_spark_make_the_same_versions_of_json_files(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = Both(spark, tmp_path, monkeypatch, 3, form="json")
    both.people("b.json", [1, 2, 3, 3, 4], "b", 1_000)
    both.people("a.json", [1, 2, 5, 6, 7], "a", 1_000)
    both.sales("0.json", list(range(40)), 1_000)
    (error, *_, views, _), ways = both.agree()
    assert error is None and ways and all(ways) and len(views["all_people"]) == 7
    both.people("c.json", [7, 8], "c", 2_000)
    both.put("sales", "1.json", pa.table({"id": ["x"]}), 2_000)
    (error, *_), ways = both.agree()
    assert error is not None and "1.json, row 1" in error and ways == [True, False]


def test_workers_and_spark_report_the_same_bad_rows(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = Both(spark, tmp_path, monkeypatch, 1, "bad")
    for number in range(3):
        both.sales(f"{number}.parquet", [1, 2, 3], 1_000 + number)
    weights = pa.array([float("nan"), 1.5], pa.float64())
    price = pa.array([Decimal("9999999.99")] * 2, pa.decimal128(9, 2))
    both.put("sales", "9.parquet", pa.table({"id": pa.array([1, 1], pa.int32()), "shop": ["x"] * 2, "price": price,
                                             "weight": weights}), 5_000)  # fmt: skip
    (error, *_), ways = both.agree()
    assert error is None and ways[0]
