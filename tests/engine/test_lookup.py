"""A lookup by primary key finds the rows that a scan finds, at a cost that does not grow with the table."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import freshviews as fv
from freshviews.kernel.hash import base_reads, base_store, table
from freshviews.kernel.memory.mem import PURE_PYTHON

pytestmark = pytest.mark.compiled(5)

TABLES = {
    "number": "CREATE TABLE t (v BIGINT, k INT PRIMARY KEY)",
    "string": "CREATE TABLE t (k STRING PRIMARY KEY, v BIGINT UNIQUE)",
    "two": "CREATE TABLE t (v BIGINT, s STRING, k BIGINT, PRIMARY KEY (k, s), UNIQUE (v))",
    "whole": "CREATE TABLE t (v BIGINT NOT NULL, k BIGINT, PRIMARY KEY (k, v))",
}
MANY = 30 if PURE_PYTHON else 200

Row = dict[str, Any]
Changes = list[tuple[Row, int]]
keys = st.integers(0, 4)
rows = st.tuples(keys, st.integers(0, 30))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("replace"), st.lists(rows, max_size=6), st.randoms(use_true_random=False)),
        st.tuples(st.just("raw"), st.lists(st.tuples(rows, st.sampled_from([1, -1, 2])), max_size=5), st.none()),
        st.tuples(st.sampled_from(["grow", "shrink"]), st.none(), st.none()),
    ),
    max_size=8,
)


def row(names: list[str], k: int, v: int | None) -> Row:
    made: Row = {"k": k, "s": f"s{k % 2}", "v": v}
    if names == ["k", "v"]:
        made["k"] = f"key {k}"
    return {name: made[name] for name in names}


def changes_of(db: fv.Database, step: tuple[str, Any, Any]) -> Changes:
    """A batch: it replaces rows of some keys, in any order and with detours; changes any rows; inserts many, or deletes
    all."""
    what, given_rows, order = step
    stored = db.table("t").to_arrow().to_pylist()
    names = db.table("t").schema.names
    if what == "grow":
        return [(row(names, 1000 + k, 1000 + k), 1) for k in range(MANY)]
    if what == "shrink":
        return [(one, -1) for one in stored]
    if what == "raw":
        return [(row(names, k, v), m) for (k, v), m in given_rows]
    found: Changes = []
    new = {k: row(names, k, v) for k, v in given_rows}
    for k, one in new.items():
        found.append((one, 1))
        found += [(old, -1) for old in stored if all(old[n] == one[n] for n in names if n != "v")]
        found += [(row(names, k, 77), 1), (row(names, k, 77), -1)]
    order.shuffle(found)
    return found


def apply(db: fv.Database, changes: Changes) -> None:
    schema = db.table("t").schema
    given_rows = [{**one, "_multiplicity": m} for one, m in changes]
    whole = pa.schema([*[f.with_nullable(True) for f in schema], pa.field("_multiplicity", pa.int64())])
    db.apply("t", pa.Table.from_pylist(given_rows, whole))


def agree(db: fv.Database, kind: str) -> None:
    """Check lookups of present, deleted and unknown keys, some twice, against a scan."""
    stored = db.table("t")
    names = {"number": ["k"], "string": ["k"], "two": ["s", "k"], "whole": ["v", "k"]}[kind]
    schema = pa.schema([stored.schema.field(name).with_nullable(True) for name in names])
    contents = stored.to_arrow().to_pylist()
    never = row(stored.schema.names, 7, 7) | ({"k": "a string never seen"} if kind == "string" else {})
    if kind == "two":
        never["s"] = "another one"
    asked = [row(stored.schema.names, k, v) for k in (0, 1, 2, 1, 1000, 1007) for v in (1, 2, 1000)] + [never]
    asked += contents[::3] + contents[:1] + [dict.fromkeys(names)]
    wanted = {tuple(one[name] for name in names) for one in asked}
    expected = Counter(tuple(one.values()) for one in contents if tuple(one[name] for name in names) in wanted)
    size = len(stored._state.decoder.dictionary)
    given_keys = pa.Table.from_pylist([{name: one[name] for name in names} for one in asked], schema)
    found = stored.lookup(given_keys)
    assert found.schema == stored.schema
    assert Counter(tuple(one.values()) for one in found.to_pylist()) == expected
    # Several chunks with offsets into their buffers.
    chunked = pa.concat_tables([given_keys.slice(0, 5), given_keys.slice(5)])
    assert stored.lookup(chunked).equals(found)
    assert len(stored._state.decoder.dictionary) == size


@pytest.mark.parametrize("kind", TABLES)
@settings(max_examples=8 if PURE_PYTHON else 60, deadline=None)
@given(several=steps)
def test_a_lookup_finds_the_same_rows_as_a_scan(kind: str, several: list[tuple[str, Any, Any]]) -> None:
    with fv.Database() as db:
        db.execute(TABLES[kind])
        agree(db, kind)
        for step in several:
            before = Counter(db.table("t"))
            try:
                apply(db, changes_of(db, step))
            except fv.BatchError:
                assert Counter(db.table("t")) == before
            agree(db, kind)


def test_a_row_is_found_after_its_replacement_was_refused() -> None:
    with fv.Database() as db:
        db.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")
        db.insert("t", [(1, 1), (2, 2)])
        with pytest.raises(fv.BatchError, match="PRIMARY KEY"):
            apply(db, [({"k": 1, "v": v}, 1) for v in range(2, 100)])
        with pytest.raises(fv.BatchError):
            apply(db, [({"k": 1, "v": 1}, -1), ({"k": 1, "v": 5}, 1), ({"k": 2, "v": 7}, -1)])
        assert db.table("t").lookup(pa.table({"k": [1]})).to_pylist() == [{"k": 1, "v": 1}]


def test_keys_are_found_after_a_restore_from_an_image(tmp_path: Path) -> None:
    schema = TABLES["two"]
    with fv.Database() as db:
        db.execute(schema)
        apply(db, [({"k": k, "s": f"s{k % 2}", "v": k}, 1) for k in range(MANY)])
        apply(db, [({"k": k, "s": f"s{k % 2}", "v": k}, -1) for k in range(0, MANY, 3)])
        db.write_image(tmp_path / "image", sync=False)
        statements = [state.definition for state in db._relations.tables.values()]
    with fv.Database.from_image(tmp_path / "image", statements) as db:
        agree(db, "two")
        apply(db, [({"k": k, "s": f"s{k % 2}", "v": 5000 + k}, 1) for k in range(0, 9 * MANY, 3)])
        agree(db, "two")


STRINGS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]


@pytest.mark.parametrize("kind", STRINGS, ids=str)
def test_strings_of_any_arrow_type_can_be_lookup_keys(kind: pa.DataType) -> None:
    with fv.Database() as db:
        db.execute("CREATE TABLE t (k STRING PRIMARY KEY, v INT)")
        db.insert("t", [("", 1), ("é", 2), ("a longer one", 3)])
        keys = pa.array(["a longer one", None, "", "b", "é"]).cast(kind)
        found = db.table("t").lookup(pa.table({"K": keys, "other": range(5)}))
        assert sorted(found.column("v").to_pylist()) == [1, 2, 3]
        assert db.table("t").lookup(pa.table({"k": pa.array(["", None]).cast(kind)})).column("v").to_pylist() == [1]
        assert db.table("t").lookup(pa.table({"k": pa.array([], kind)})).num_rows == 0
        assert db.table("t").lookup(pa.table({"k": pa.nulls(3)})).num_rows == 0


def test_the_error_names_a_key_that_cannot_be_looked_up() -> None:
    with fv.Database() as db:
        db.execute("CREATE TABLE t (k INT PRIMARY KEY, v INT); CREATE TABLE u (k INT UNIQUE)")
        with pytest.raises(fv.CatalogError, match="table u has no PRIMARY KEY, so rows cannot be looked up"):
            db.table("u").lookup(pa.table({"k": [1]}))
        stored = db.table("t")
        with pytest.raises(TypeError, match="not list"):
            stored.lookup([1])
        with pytest.raises(fv.BatchError, match=r"no column k; the primary key is \(k\)"):
            stored.lookup(pa.table({"v": [1]}))
        with pytest.raises(fv.BatchError, match="more than one column k"):
            stored.lookup(pa.table([pa.array([1])] * 2, names=["k", "K"]))
        with pytest.raises(fv.BatchError, match="table t, key 1, column k: 4294967296") as error:
            stored.lookup(pa.table({"k": [1, 1 << 32]}))
        assert error.value.row == 1
        with pytest.raises(fv.BatchError, match="column k: string"):
            stored.lookup(pa.table({"k": ["1"]}))


LOADS_SIZES = (200, 6400)


def print_loads() -> None:
    """Print, for each size of a table, the words that the kernels read to look up 100 keys."""
    for size in LOADS_SIZES:
        with fv.Database() as db:
            db.execute("CREATE TABLE t (k BIGINT PRIMARY KEY, v BIGINT)")
            db.insert("t", pa.table({"k": range(size), "v": range(size)}))
            loads = 0
            real = base_store.load

            def counted(address: int, index: int, real: Any = real) -> int:
                nonlocal loads
                loads += 1
                return real(address, index)

            base_reads.load = base_store.load = table.load = counted
            found = db.table("t").lookup(pa.table({"k": range(0, 2 * size, size // 50)}))
            base_reads.load = base_store.load = table.load = real
            assert found.num_rows == 50
            print(loads)


def test_the_cost_of_a_lookup_hardly_grows_with_the_table() -> None:
    # A separate process runs the kernels as plain Python, to count every word that they read.
    child = subprocess.run(
        [sys.executable, "-c", "from tests.engine.test_lookup import print_loads; print_loads()"],
        env=os.environ | {"FRESHVIEWS_PURE_PYTHON": "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    small, large = map(int, child.stdout.split())
    assert 100 * 5 < small < 100 * 60
    assert large < 1.5 * small
