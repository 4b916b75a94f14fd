"""``make flips``: Arrow data with flipped bytes is accepted or refused with our errors, and ends no process.

``python -m tests.engine.arrow_flips --minutes N [--seed S] [--only K]`` makes tables of all accepted types, changes
bytes of their IPC stream, of their buffers or of the words of their C structures, and inserts them. Accepted rows must
be readable and deletable, so that no row is left. A worker process takes one number after the other; the parent reports
the number at which one crashed, hung or met another error, and starts the next worker behind it. Pointers are never
changed, because they cannot be checked.
"""

from __future__ import annotations

import argparse
import collections
import ctypes
import datetime as dt
import faulthandler
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

import freshviews as fv
from freshviews.stream import AppendOnly, Multiplicities, signed_rows
from tests.stream.tables import table

_SECONDS = 60
"""Seconds after which one change counts as hung."""
_MEMORY = 8 << 30
"""Most bytes of addresses of a worker."""

_TEXTS = ["", "a", "abc", "a text of more than twelve bytes", "ä" * 9, "日本", "x" * 300, None]
_NUMBERS = [0, 1, -1, 100, -128, 7, None]
_NATURALS = [0, 1, 200, 255, None]
_FLOATS = [0.0, -0.0, 1.5, float("nan"), float("inf"), -2.25, None]
_PRICES = [Decimal("0.00"), Decimal("1.50"), Decimal("-12345.67"), None]
_DAYS = [dt.date(1970, 1, 1), dt.date(2026, 2, 28), dt.date(1, 1, 1), None]
_MOMENTS = [dt.datetime(2026, 1, 2), dt.datetime(1969, 12, 31, 23, 0, 1), None]

_OF_TEXT = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
_OF_TEXT += [pa.dictionary(pa.uint32(), pa.large_string()), pa.dictionary(pa.int64(), pa.string())]
_SIGNED = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
_UNSIGNED = [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
_DECIMALS = [pa.decimal128(9, 2), pa.decimal256(9, 2), pa.decimal128(30, 2)]

WAYS: dict[str, list[tuple[list[Any], list[pa.DataType]]]] = {
    "yes BOOLEAN": [([True, False, None], [pa.bool_()])],
    "tiny TINYINT": [(_NUMBERS, _SIGNED)],
    "small SMALLINT": [(_NUMBERS, _SIGNED), (_NATURALS, _UNSIGNED)],
    "whole INT": [(_NUMBERS, _SIGNED), (_NATURALS, _UNSIGNED), ([1, 2, None], [pa.dictionary(pa.int8(), pa.int64())])],
    "big BIGINT NOT NULL": [([0, 1, 100], _SIGNED + _UNSIGNED)],
    "single FLOAT": [(_FLOATS, [pa.float16(), pa.float32(), pa.float64()])],
    "number DOUBLE": [(_FLOATS, [pa.float16(), pa.float32(), pa.float64()]), (_NUMBERS, _SIGNED)],
    "price DECIMAL(9, 2)": [(_PRICES, _DECIMALS), (_NUMBERS, _SIGNED)],
    "rate DECIMAL(18, 4)": [(_PRICES, _DECIMALS)],
    "text STRING": [(_TEXTS, _OF_TEXT), ([None], [pa.null()])],
    "word VARCHAR(12)": [(["", "abc", "ä" * 9, None], _OF_TEXT)],
    "day DATE": [(_DAYS, [pa.date32(), pa.date64()]), ([dt.datetime(2026, 1, 2), None], [pa.timestamp("s")])],
    "at TIMESTAMP": [(_MOMENTS, [*map(pa.timestamp, ("s", "ms", "us", "ns")), pa.timestamp("us", "UTC")])],
}
_WRONG = [
    ([[1, 2], [], None], pa.list_(pa.int64())),
    ([["a"], None], pa.large_list(pa.string())),
    ([{"a": 1, "b": "x"}, None], pa.struct([("a", pa.int64()), ("b", pa.string())])),
    ([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    ([b"abc", b"", None], pa.binary()),
    ([b"abc", b"a value of more than twelve bytes", None], pa.binary_view()),
    ([[1, 2], None], pa.list_view(pa.int64())),
]
"""Columns of types that no column of a table accepts."""

SCRIPT = f"""CREATE TABLE t ({", ".join(WAYS)});
CREATE TABLE u ({", ".join(WAYS)}) TBLPROPERTIES ('freshviews.trusted' = 'true');
CREATE MATERIALIZED VIEW counts AS SELECT big, COUNT(*) AS n, MAX(text) AS most FROM t GROUP BY big;
CREATE MATERIALIZED VIEW lengths AS
    SELECT length(text) AS size, COUNT(*) AS n FROM u WHERE word NOT LIKE 'x%' GROUP BY ALL"""
_KEYED = "CREATE TABLE k (id BIGINT PRIMARY KEY, name STRING NOT NULL, UNIQUE (name))"


def _column(rng: np.random.Generator, name: str, rows: int) -> pa.Array:
    values, kinds = WAYS[name][rng.integers(len(WAYS[name]))]
    kind = kinds[rng.integers(len(kinds))]
    if rng.integers(40) == 0:
        values, kind = _WRONG[rng.integers(len(_WRONG))]
    if pa.types.is_unsigned_integer(kind) or pa.types.is_integer(kind):
        values = [value for value in values if value is None or _fits(kind, value)]
    chosen = [values[i] for i in rng.integers(0, len(values), rows)]
    if rng.integers(3) == 0:
        chosen = [values[0] if value is None else value for value in chosen]
    if pa.types.is_dictionary(kind):
        return pa.array(chosen, kind.value_type).dictionary_encode().cast(kind)
    if pa.types.is_float16(kind):
        return pa.array(chosen, pa.float32()).cast(kind)
    return pa.array(chosen, kind)


def _fits(kind: pa.DataType, value: int) -> bool:
    return value >= 0 if pa.types.is_unsigned_integer(kind) else value < 2 ** (kind.bit_width - 1)


def batches(rng: np.random.Generator) -> list[pa.RecordBatch]:
    """Record batches of some columns, of one schema."""
    names = [name for name in WAYS if name.endswith("NOT NULL") or rng.integers(4) == 0]
    rows = int(rng.choice([0, 1, 2, 5, 9, 40, 200]))
    columns = {name.split()[0]: _column(rng, name, rows) for name in names}
    if rng.integers(3) == 0:
        columns["_multiplicity"] = pa.array(rng.choice([1, 2], rows), pa.int64())
    whole = pa.record_batch(columns)
    if rng.integers(3) == 0 and rows > 2:
        whole = whole.slice(int(rng.integers(1, rows - 1)))
    if rng.integers(4):
        return [whole]
    at = int(rng.integers(0, whole.num_rows + 1))
    return [whole.slice(0, at), whole.slice(at)]


def _mutated(rng: np.random.Generator, data: bytes) -> bytes:
    """Bytes with a few changes, or cut off."""
    found = bytearray(data)
    for _ in range(int(rng.choice([1, 1, 1, 2, 4, 16]))):
        if not found:
            break
        at = int(len(found) * max(rng.random(), rng.random()))  # The schema comes first.
        if rng.integers(40) == 0:
            del found[at:]
        elif rng.integers(2):
            found[at] ^= 1 << int(rng.integers(8))
        else:
            wide = int(rng.choice([1, 4, 8]))
            value = int(rng.choice([0, 0xFF, 0x7F, 0x80, 1, 100]))
            for i in range(at - at % wide, min(at - at % wide + wide, len(found))):
                found[i] = value if wide == 1 or rng.integers(4) == 0 else 0xFF if value == 0xFF else found[i]
    return bytes(found)


def flipped_stream(rng: np.random.Generator, given: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Batches read from a stream with changed bytes."""
    sink = pa.BufferOutputStream()
    compression = [None, None, "lz4", "zstd"][rng.integers(4)]
    with pa.ipc.new_stream(sink, given[0].schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        for batch in given:
            writer.write_batch(batch)
    with pa.ipc.open_stream(_mutated(rng, sink.getvalue().to_pybytes())) as reader:
        return list(reader)


def _flipped_array(rng: np.random.Generator, array: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        indices, values = _flipped_array(rng, array.indices), array.dictionary
        if rng.integers(2):
            values = _flipped_array(rng, values)
        return pa.DictionaryArray.from_arrays(indices, values, safe=False)
    if array.type.num_fields or pa.types.is_binary_view(array.type):
        return array
    buffers = array.buffers()
    at = int(rng.integers(len(buffers)))
    if buffers[at] is not None and not pa.types.is_string_view(array.type) and rng.integers(20) == 0:
        buffers[at] = None
    elif buffers[at] is not None:
        buffers[at] = pa.py_buffer(_mutated(rng, buffers[at].to_pybytes()))
    nulls = int(rng.choice([-1, -1, -1, 0, 1, len(array), array.null_count]))
    offset = max(array.offset + int(rng.choice([0, 0, 0, 1, -1])), 0)
    return pa.Array.from_buffers(array.type, len(array), buffers, nulls, offset)


def flipped_buffers(rng: np.random.Generator, given: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Batches whose arrays have buffers with changed bytes."""
    found = []
    for batch in given:
        columns = [_flipped_array(rng, array) if rng.integers(2) else array for array in batch.columns]
        found.append(pa.RecordBatch.from_arrays(columns, names=batch.schema.names))
    return found


def flipped_structures(rng: np.random.Generator, given: Sequence[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Batches from C structures with fewer rows, other counts of NULLs, or buffers that are NULL."""
    found = []
    for batch in given:
        array, schema = (ctypes.c_int64 * 10)(), (ctypes.c_int64 * 9)()
        batch._export_to_c(ctypes.addressof(array), ctypes.addressof(schema))
        children = (ctypes.c_int64 * array[4]).from_address(array[6]) if array[4] else []
        if rng.integers(8) == 0:
            array[0] = int(rng.choice([0, -1, array[0] - 1, -(2**62)]))
        for child in children:
            words = (ctypes.c_int64 * 10).from_address(child)
            change = int(rng.integers(6))
            if change == 0:
                words[1] = int(rng.choice([-1, 0, 1, words[0], 2**62, -5]))
            elif change == 1:
                words[0] = int(rng.choice([0, -1, words[0] - 1, -(2**62)]))
            elif change == 2 and words[3]:
                # Arrow itself reads the offsets, and the sizes of buffers that views have.
                buffers = (ctypes.c_int64 * words[3]).from_address(words[5])
                buffers[int(rng.integers(words[3])) if words[3] == 2 else 0] = 0
        found.append(pa.RecordBatch._import_from_c(ctypes.addressof(array), ctypes.addressof(schema)))
    return found


FLIPS: tuple[Callable[[np.random.Generator, Sequence[pa.RecordBatch]], list[pa.RecordBatch]], ...]
FLIPS = (flipped_stream, flipped_stream, flipped_buffers, flipped_structures)
_ARROW_REFUSES = (pa.ArrowException, OSError, MemoryError, ValueError, TypeError, KeyError, OverflowError, IndexError)
"""Errors that pyarrow raises while it reads flatbuffers and schemas, which it checks itself."""


class Flips:
    """A database that takes flipped batches, one number after the other; outcomes are counted."""

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self._definition = table(f"CREATE TABLE t ({', '.join(WAYS)})")
        self._begin()

    def _begin(self) -> None:
        self._db = fv.Database()
        self._db.execute(f"{SCRIPT}; {_KEYED}")
        self._db.insert("k", [(1, "abc"), (2, "x" * 300)])

    def close(self) -> None:
        self._db.close()

    def run(self, seed: int, number: int) -> None:
        """Take one flipped batch. Raises foreign errors, and AssertionError if an accepted batch leaves rows behind."""
        rng = np.random.default_rng([seed, number])
        given = batches(rng)
        try:
            flipped = FLIPS[rng.integers(len(FLIPS))](rng, given)
        except _ARROW_REFUSES:
            self.counts["refused by Arrow"] += 1
            return
        for batch in flipped:
            self._take(rng, batch)
        if len(flipped) > 1:
            try:
                whole = pa.Table.from_batches(flipped)
            except _ARROW_REFUSES:
                return
            self._take(rng, whole)

    def _take(self, rng: np.random.Generator, rows: pa.Table | pa.RecordBatch) -> None:
        name = "tu"[rng.integers(2)]
        stored = self._db.table("t")
        try:
            signed = "_multiplicity" in _names(rows)
            if rng.integers(4) == 0:
                form = Multiplicities("_multiplicity") if signed else AppendOnly()
                rows = signed_rows(rows, self._definition, form, set_aside=bool(rng.integers(2))).rows
                signed = True
            if rng.integers(8) == 0:
                self._db.table("k").lookup(rows)
            (self._db.apply if signed else self._db.insert)(name, rows)
        except fv.FreshviewsError as error:
            self.counts[f"refused: {type(error).__name__}"] += 1
            assert str(error) and not len(stored)
            return
        self.counts["accepted"] += 1
        few = not signed or max(rows.column("_multiplicity").to_pylist(), default=0) < 1000
        for relation in (*[stored] * few, self._db.view("counts"), self._db.view("lengths")):
            relation.to_arrow().validate(full=True)
            assert len(list(relation)) == len(relation)
        if signed:
            at = _names(rows).index("_multiplicity")
            signs = [-sign for sign in rows.column(at).to_pylist()]
            try:
                self._db.apply(name, rows.set_column(at, "_multiplicity", pa.array(signs, pa.int64())))
            except fv.BatchError:
                # In this order a sum of huge multiplicities leaves BIGINT.
                assert not few
                self.close()
                self._begin()
                return
        else:
            self._db.delete(name, rows if name == "u" else stored.to_arrow())
        assert not len(stored), "rows are left"
        assert not [*self._db.view("counts"), *self._db.view("lengths")], "rows of views are left"


def _names(rows: pa.Table | pa.RecordBatch) -> list[str]:
    try:
        return list(rows.schema.names)
    except UnicodeDecodeError:
        return []


def run(seed: int, first: int, until: float) -> int:
    """The worker: print each number before its change, and the counts at the end."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    faulthandler.enable()
    flips = Flips()
    number = first
    while time.time() < until:
        print(number, flush=True)
        faulthandler.dump_traceback_later(_SECONDS, exit=True)
        flips.run(seed, number)
        number += 1
        if number % 1000 == 0:
            _print(flips.counts)
    faulthandler.cancel_dump_traceback_later()
    _print(flips.counts)
    return 0


def _print(counts: collections.Counter[str]) -> None:
    print("counts", *(f"{name}={count}" for name, count in counts.items()), sep="\t", flush=True)
    counts.clear()


def flip(seed: int, minutes: float, shown: Callable[[str], Any]) -> int:
    """Run workers for some minutes; returns the number of failures."""
    until = time.time() + 60 * minutes
    counts: collections.Counter[str] = collections.Counter()
    failures, first = 0, 0
    while time.time() < until and failures < 20:
        work = [sys.executable, "-m", "tests.engine.arrow_flips", "--seed", str(seed), "--worker", str(first)]
        with subprocess.Popen([*work, "--until", str(until)], stdout=subprocess.PIPE, text=True) as worker:
            assert worker.stdout is not None
            for line in worker.stdout:
                if line.startswith("counts"):
                    for part in line.split("\t")[1:]:
                        name, _, count = part.rpartition("=")
                        counts[name] += int(count)
                else:
                    first = int(line) + 1
        if worker.returncode:
            failures += 1
            shown(f"--seed {seed} --only {first - 1} ended the worker with {worker.returncode}")
    outcomes = ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items()))
    shown(f"{first:,} changes, {failures} failures: {outcomes}")
    return failures


def main(arguments: Sequence[str]) -> int:
    about = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m tests.engine.arrow_flips", description=about)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="the number of the one change to make, in this process")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.only is not None:
        faulthandler.enable()
        Flips().run(chosen.seed, chosen.only)
        return 0
    if chosen.worker is not None:
        return run(chosen.seed, chosen.worker, chosen.until)
    return 1 if flip(chosen.seed, chosen.minutes, lambda text: print(text, flush=True)) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
