"""Views restored from their images agree with views that were never interrupted."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from freshviews.catalog.catalog import Catalog, ViewDefs
from freshviews.catalog.definitions import TableDef, ViewDef
from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.views.maintained import MaintainedView
from freshviews.errors import OtherProgram, PlanError, StoreError
from freshviews.kernel.memory.mem import PURE_PYTHON
from freshviews.plan import STRATEGIES
from freshviews.sql.statements.sql_script import parse_script
from freshviews.store import array_file
from freshviews.store.array_file import write_arrays
from freshviews.store.strings import read_strings, write_strings
from freshviews.types import NULL, Dictionary

pytestmark = pytest.mark.compiled(8)

SCRIPT = """
CREATE TABLE r (a BIGINT, b BIGINT) TBLPROPERTIES ('freshviews.trusted' = 'true');
CREATE TABLE s (b BIGINT, c BIGINT, d DOUBLE) TBLPROPERTIES ('freshviews.trusted' = 'true');
CREATE TABLE t (c BIGINT, name STRING) TBLPROPERTIES ('freshviews.trusted' = 'true');
CREATE MATERIALIZED VIEW sums AS
  SELECT b, SUM(a) AS x, COUNT(*) AS n, SUM(d) AS y, AVG(d) AS z FROM r JOIN s USING (b) GROUP BY b;
CREATE MATERIALIZED VIEW ends AS
  SELECT s.b, MIN(name) AS least, MAX(name) AS most, COUNT(DISTINCT name) AS n, MAX_BY(name, d) AS d,
  BIT_AND(s.c) AS bits
  FROM s JOIN t ON s.c = t.c WHERE upper(name) <> 'P3' GROUP BY s.b;
CREATE MATERIALIZED VIEW paths AS SELECT r.a, s.b, t.name FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c;
CREATE MATERIALIZED VIEW either AS SELECT a FROM r UNION ALL SELECT c FROM t WHERE name = 'p1';
CREATE MATERIALIZED VIEW total AS SELECT COUNT(*) AS n, SUM(d) AS d FROM s;
CREATE MATERIALIZED VIEW chain AS SELECT COUNT(*) AS n, SUM(d) AS d FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c;
"""
VIEWS = ("sums", "ends", "paths", "either", "total")
PARTED = ("ivm_eps", "ivm_eps_linear")
"""Strategies that keep counts and sums over three tables, and no other view."""
ROWS = 40 if PURE_PYTHON else 300


def definitions(script: str = SCRIPT) -> dict[str, TableDef | ViewDef]:
    found: dict[str, TableDef | ViewDef] = {}
    for statement in parse_script(script, Catalog()):
        for one in statement.views if isinstance(statement, ViewDefs) else (statement,):
            assert isinstance(one, TableDef | ViewDef)
            found[one.name] = one
    return found


@contextmanager
def maintained(
    name: str, dictionary: Dictionary, strategy: str | None = None, script: str = SCRIPT
) -> Iterator[MaintainedView]:
    known = definitions(script)
    view = known[name]
    assert isinstance(view, ViewDef)
    if strategy is not None:
        view = replace(view, strategy=strategy)
    made = MaintainedView(view, {n: known[n] for n in view.inputs}, dictionary)
    try:
        made.prepare()
        yield made
    finally:
        made.close()


def batches(order: random.Random, dictionary: Dictionary, values: int, rows: int = ROWS) -> list[CodeBatch]:
    """A batch for each table; every fourth row is a delete."""
    names = np.array([dictionary.encode(f"p{i}") for i in range(6)] + [NULL])
    doubles = np.array([0.1, 1e300, -1e300, 2.5, float("inf")]).view(np.int64)
    draw = np.random.default_rng(order.randrange(2**32))

    def integers() -> np.ndarray:
        return draw.integers(0, values, rows)

    columns = {
        "r": {"a": integers(), "b": integers()},
        "s": {"b": integers(), "c": integers(), "d": draw.choice(doubles, rows)},
        "t": {"c": integers(), "name": draw.choice(names, rows)},
    }
    m = draw.choice([1, 1, 1, -1], rows)
    return [CodeBatch(name, found, m) for name, found in columns.items()]


def run(view: MaintainedView, several: list[CodeBatch]) -> None:
    for batch in several:
        if batch.relation in view.inputs:
            assert view.apply(batch) is None


def rows_of(several: Iterator[CodeBatch] | list[CodeBatch]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for batch in several:
        columns = [*batch.columns.values(), batch.multiplicities]
        found += zip(*(column.tolist() for column in columns), strict=True)
    return sorted(found)


def agree(one: MaintainedView, other: MaintainedView) -> None:
    """Check that contents, rows in order, change and EXPLAIN are the same."""
    for a, b in zip(one.contents(100), other.contents(100), strict=True):
        assert {n: c.tolist() for n, c in a.columns.items()} == {n: c.tolist() for n, c in b.columns.items()}
        assert a.multiplicities.tolist() == b.multiplicities.tolist()
    if one.wants_change and other.wants_change:
        assert rows_of([one.take_change()]) == rows_of([other.take_change()])
    assert lasting(one) == lasting(other)


def lasting(view: MaintainedView) -> tuple[dict[str, tuple[int, int]], list[str]]:
    """Sizes and EXPLAIN without the parts that are rebuilt after an image is read: tries, and numbers of traces."""

    def lasts(text: str) -> bool:
        return not any(word in text for word in ("trie of ", "intervals of ", "trace of "))

    sizes = {name: size for name, size in view.sizes().items() if lasts(name)}
    return sizes, [" ".join(line.split()) for line in view.explain().splitlines() if lasts(line)]


CASES = [
    *(pytest.param(view, None, 1 << 18, id=f"{view}-read") for view in VIEWS),
    *(pytest.param(view, None, 1, id=f"{view}-mapped") for view in VIEWS),
    *(
        pytest.param(view, strategy, 1, id=f"{view}-{strategy}")
        for strategy in STRATEGIES
        for view in (("chain",) if strategy in PARTED else VIEWS)
    ),
]


@pytest.mark.sample(2)
@pytest.mark.parametrize("name, strategy, mapped", CASES)
def test_a_restored_view_agrees_with_the_original(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, strategy: str | None, mapped: int
) -> None:
    monkeypatch.setattr(array_file, "MAPPED", mapped)
    order = random.Random(name)
    dictionary = Dictionary()
    with planned(name, dictionary, strategy) as one:
        for turn in range(3):
            one.wants_change = turn > 0
            # Wide ranges of values make tables grow, narrow ones make groups large.
            run(one, batches(order, dictionary, (5, 400, 20)[turn]))
            one.discard_change()
            one.write_image(tmp_path / "image", sync=False)
            write_strings(tmp_path / "strings", dictionary, 0, sync=False)
            known = Dictionary()
            read_strings(tmp_path / "strings", known)
            with planned(name, known, strategy) as other:
                other.wants_change = turn > 0
                other.read_image(tmp_path / "image", verify=True)
                agree(one, other)
                for values in (400, 5):
                    several = batches(order, dictionary, values)
                    run(one, several)
                    run(other, several)
                    agree(one, other)
                run(one, [b.negated() for b in several])
                run(other, [b.negated() for b in several])
                agree(one, other)
                other.clear()
                run(other, several)
                with planned(name, dictionary, strategy) as fresh:
                    run(fresh, several)
                    assert rows_of(fresh.contents(100)) == rows_of(other.contents(100))
            one.discard_change()


@contextmanager
def planned(name: str, dictionary: Dictionary, strategy: str | None) -> Iterator[MaintainedView]:
    """The view under a strategy; skips the test if the strategy cannot maintain it."""
    try:
        with maintained(name, dictionary, strategy) as found:
            yield found
    except PlanError as error:
        pytest.skip(str(error))


def test_images_are_deterministic_and_leave_the_view_unchanged(tmp_path: Path) -> None:
    dictionary = Dictionary()
    order = random.Random(0)
    with maintained("ends", dictionary) as one, maintained("ends", dictionary) as other:
        for turn in range(4):
            several = batches(order, dictionary, 20)
            run(one, several)
            run(other, several)
            one.write_image(tmp_path / f"{turn}.1")
            one.write_image(tmp_path / f"{turn}.2", sync=False)
            assert (tmp_path / f"{turn}.1").read_bytes() == (tmp_path / f"{turn}.2").read_bytes()
            agree(one, other)


def test_the_file_of_a_mapped_image_may_be_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_file, "MAPPED", 1)
    dictionary = Dictionary()
    order = random.Random(0)
    path = tmp_path / "image"
    with maintained("paths", dictionary) as one, maintained("paths", dictionary) as other:
        for _ in range(5):
            several = batches(order, dictionary, 30)
            run(one, several)
            run(other, several)
            # This overwrites the mapped file; the mapping keeps the old content.
            other.write_image(path, sync=False)
            other.read_image(path)
            agree(one, other)
            several = batches(order, dictionary, 30)
            run(one, several)
            run(other, several)
            agree(one, other)
        path.unlink()
        agree(one, other)


def test_an_image_of_a_view_with_an_unread_change_is_refused(tmp_path: Path) -> None:
    dictionary = Dictionary()
    for strategy in (None, "recompute"):
        with maintained("sums", dictionary, strategy) as view:
            view.wants_change = True
            run(view, batches(random.Random(0), dictionary, 5))
            with pytest.raises(ValueError, match="view sums has an unread change, which an image cannot"):
                view.write_image(tmp_path / "image")
            view.take_change()
            view.write_image(tmp_path / "image")
            assert [path.name for path in tmp_path.iterdir()] == ["image"]


def test_a_view_refuses_the_image_of_another_view(tmp_path: Path) -> None:
    dictionary = Dictionary()
    several = batches(random.Random(0), dictionary, 5)
    path = tmp_path / "image"
    with maintained("sums", dictionary) as view:
        run(view, several)
        view.write_image(path)
        before = rows_of(view.contents(100))
        told = "image of view sums, not of ends"
        with maintained("ends", dictionary) as other, pytest.raises(StoreError, match=told):
            other.read_image(path)
        changed = SCRIPT.replace("SUM(a) AS x", "SUM(a + 1) AS x")
        with maintained("sums", dictionary, script=changed) as other:
            run(other, several)
            kept = rows_of(other.contents(100))
            with pytest.raises(OtherProgram, match=r"is out of date, .*open the database with the old"):
                other.read_image(path)
            assert rows_of(other.contents(100)) == kept
        for texts in ([], ["p0", "p1"], [f"q{i}" for i in range(9)]):
            with maintained("sums", Dictionary(texts)) as other:
                with pytest.raises(StoreError, match=r"needs 6 strings, but the dictionary has .*; load the strings"):
                    other.read_image(path)
                assert list(other.contents(9)) == []
        assert rows_of(view.contents(100)) == before


@pytest.mark.parametrize("mapped", [1, 1 << 18], ids=["mapped", "read"])
def test_the_error_of_a_damaged_image_names_the_file_and_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mapped: int
) -> None:
    monkeypatch.setattr(array_file, "MAPPED", mapped)
    monkeypatch.setattr(array_file, "ALIGN", 4096)
    dictionary = Dictionary()
    path = tmp_path / "image"
    with maintained("total", dictionary) as view:
        run(view, batches(random.Random(0), dictionary, 5))
        view.write_image(path)
        rows = rows_of(view.contents(100))
        data = path.read_bytes()
        refused = 0
        for place in range(0, len(data), 37):
            broken = bytearray(data)
            broken[place] ^= 4
            path.unlink()
            path.write_bytes(broken)
            try:
                view.read_image(path, verify=True)
                assert rows_of(view.contents(100)) == rows  # between the arrays
            except StoreError as error:
                assert str(error).startswith(str(path))
                refused += 1
        assert refused > 5
        for end in (0, 7, 20, len(data) // 2, len(data) - 1):
            path.unlink()
            path.write_bytes(data[:end])
            with pytest.raises(StoreError, match=str(path)):
                view.read_image(path)
        path.unlink()
        with pytest.raises(StoreError, match=f"{path} could not be opened: No such file"):
            view.read_image(path)
        monkeypatch.setattr(array_file, "FORMAT", 99)
        view.write_image(path)
        monkeypatch.undo()
        with pytest.raises(StoreError, match=f"{path} is of format 99; .*open it with the release that wrote it"):
            view.read_image(path)
        with pytest.raises(StoreError, match="could not be written"):
            view.write_image(tmp_path / "missing" / "image")
        assert rows_of(view.contents(100)) == rows


def test_files_of_strings_must_be_read_in_order(tmp_path: Path) -> None:
    dictionary = Dictionary(["a", "", "ü\0x"])
    assert write_strings(tmp_path / "1", dictionary, 0) == 3
    dictionary.encode("next")
    assert write_strings(tmp_path / "2", dictionary, 3) == 4
    assert write_strings(tmp_path / "3", dictionary, 4) == 4
    known = Dictionary()
    with pytest.raises(StoreError, match="2 begins after string 3, but 0 strings were read"):
        read_strings(tmp_path / "2", known)
    for name in "123":
        read_strings(tmp_path / name, known)
    assert known.entries() == dictionary.entries()
    assert [known.encode(text) for text in ("ü\0x", "next", "new")] == [2, 3, 4]
    assert known.decode_array(np.arange(5)).to_pylist() == known.entries() == ["a", "", "ü\0x", "next", "new"]
    with pytest.raises(StoreError, match="is not a file of strings"):
        write_arrays(tmp_path / "4", {}, [], sync=False)
        read_strings(tmp_path / "4", known)
    other = Dictionary(["x", "y", "next"])
    with pytest.raises(StoreError, match="already"):
        read_strings(tmp_path / "2", other)
    assert len(other) == 3


@pytest.mark.skipif(PURE_PYTHON, reason="this is that run")
def test_an_image_written_by_machine_code_is_read_by_plain_python(tmp_path: Path) -> None:
    dictionary = Dictionary()
    with maintained("ends", dictionary) as view:
        run(view, batches(random.Random(0), dictionary, 5, 60))
        view.write_image(tmp_path / "image")
        write_strings(tmp_path / "strings", dictionary, 0)
        run(view, batches(random.Random(1), dictionary, 9, 60))
        expected = rows_of(view.contents(100))
    code = f"""
import random, sys
from pathlib import Path
from freshviews.store.array_file import write_arrays
from freshviews.store.strings import read_strings
from freshviews.types import Dictionary
from tests.engine.test_image import batches, maintained, rows_of, run
dictionary = Dictionary()
read_strings(Path({str(tmp_path / "strings")!r}), dictionary)
with maintained("ends", dictionary) as view:
    view.read_image(Path({str(tmp_path / "image")!r}))
    run(view, batches(random.Random(1), dictionary, 9, 60))
    print(rows_of(view.contents(100)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"FRESHVIEWS_PURE_PYTHON": "1"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(expected)


@pytest.mark.full
@pytest.mark.skipif(PURE_PYTHON, reason="too slow")
def test_a_mapped_view_stays_right_after_changes(tmp_path: Path) -> None:
    order = random.Random(3)
    dictionary = Dictionary()
    path = tmp_path / "image"
    with maintained("paths", dictionary, "first_order") as one, maintained("paths", dictionary, "first_order") as other:
        for turn in range(30):
            several = batches(order, dictionary, order.choice([300, 5000]), 3000)
            if turn % 3 == 2:
                several = [b.negated() for b in several]
            run(one, several)
            run(other, several)
            if turn % 10 == 9:
                one.clear()
                other.clear()
            other.write_image(path, sync=False)
            with maintained("paths", dictionary, "first_order") as brief:
                brief.read_image(path)
                run(brief, several[: turn % 4])
            other.read_image(path)
            path.unlink()
            assert one.sizes() == other.sizes()
            if turn % 5 == 4:
                agree(one, other)


@pytest.mark.full
@pytest.mark.skipif(PURE_PYTHON, reason="too slow")
def test_an_image_of_half_a_gigabyte_is_opened_in_a_tenth_of_a_second(tmp_path: Path) -> None:
    dictionary = Dictionary()
    rows = 1_500_000
    path = tmp_path / "image"
    with maintained("paths", dictionary, "first_order") as view:
        columns = {"a": np.arange(rows), "b": np.arange(rows) // 4}
        for start in range(0, 6 * rows, rows):
            wanted = {name: codes + start for name, codes in columns.items()}
            view.apply(CodeBatch("r", wanted, np.ones(rows, np.int64)))
        # The first lookup flushes the rows to slots and indexes.
        one = np.ones(1, np.int64)
        view.apply(CodeBatch("s", {"b": np.array([-1]), "c": np.array([0]), "d": np.array([0])}, one))
        view.write_image(path, sync=False)
        assert path.stat().st_size > 5e8
        sizes = view.sizes()
    with maintained("paths", dictionary, "first_order") as view:
        best = 1.0
        for _ in range(3):
            start_time = time.process_time()
            view.read_image(path)
            best = min(best, time.process_time() - start_time)
        assert best < 0.1
        assert view.sizes() == sizes
        view.apply(CodeBatch("r", {"a": np.array([-1]), "b": np.array([0])}, np.ones(1, np.int64)))
        name = dictionary.encode("x")
        view.apply(CodeBatch("t", {"c": np.array([7]), "name": np.array([name])}, np.ones(1, np.int64)))
        view.apply(CodeBatch("s", {"b": np.array([0]), "c": np.array([7]), "d": np.array([0])}, one))
        assert [row[0] for row in rows_of(view.contents(10))] == [-1, 0, 1, 2, 3]


@pytest.mark.skipif(PURE_PYTHON, reason="there is no machine code")
def test_a_forked_child_writes_an_image_without_arrow(tmp_path: Path) -> None:
    """Another thread may hold a lock of Arrow or LLVM while a process forks."""
    code = f"""
import sys
from pathlib import Path
import pyarrow as pa
import freshviews as fv
from freshviews.kernel.image import compile_writer
from freshviews.kernel.machine import beside
beside.wait_always()
db = fv.Database()
db.execute("CREATE TABLE t (a VARCHAR, b BIGINT); CREATE MATERIALIZED VIEW v AS SELECT a, SUM(b) s FROM t GROUP BY a")
db.insert("t", pa.record_batch({{"a": [f"s{{i}}" for i in range(2000)], "b": list(range(2000))}}))
compile_writer()
def none_here(function, kinds):
    raise AssertionError(f"{{function}} is not loaded")
beside._made_here = none_here
for name, module in list(sys.modules.items()):
    if name.startswith("freshviews.") and getattr(module, "pa", None) is pa:
        module.pa = None
db.write_image(Path({str(tmp_path / "image")!r}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    dictionary = Dictionary()
    read_strings(tmp_path / "image" / "strings", dictionary)
    assert dictionary.entries() == [f"s{i}" for i in range(2000)]
