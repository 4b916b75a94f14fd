"""The path of one update: the modules and functions of an insert, in order."""

from __future__ import annotations

import gc
import signal
import sys
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from freshviews import Database
from freshviews.engine import database, interrupts
from freshviews.errors import StoreError
from freshviews.kernel.memory.mem import PURE_PYTHON
from freshviews.store.directory import Directory

SCRIPT = """CREATE TABLE orders (o_id BIGINT NOT NULL PRIMARY KEY, day DATE NOT NULL);
CREATE TABLE items (o_id BIGINT NOT NULL, part STRING NOT NULL, qty BIGINT NOT NULL);
CREATE MATERIALIZED VIEW by_part AS SELECT part, COUNT(*) AS n, SUM(qty) AS qty
  FROM orders JOIN items USING (o_id) WHERE day >= DATE '2026-01-01' GROUP BY part"""

STEPS = [
    "engine.database Database.insert",
    "engine.interrupts Uninterrupted.__enter__",
    "engine.codes.encoding TableEncoder.encode",
    "engine.commit.commit commit",
    "engine.tables.constraints add_to_base",
    "engine.tables.base_table BaseTable.add",
    "engine.commit.commit run_views",
    "engine.views.maintained MaintainedView.apply",
    "engine.views.view_upkeep ByTriggers.apply",
    "engine.blocks.runtime BlockState.run",
    "engine.views.view_block ViewBlocks.failure",
    "engine.tables.constraints settle_base",
    "engine.commit.collection Collection.step",
    "engine.interrupts Uninterrupted.__exit__",
]
"""Functions of the numbered steps of "The life of one update" in docs/architecture.md, in their order."""


def called(act: Callable[[], Any], found: list[str] | None = None) -> list[str]:
    """The Python functions of the package that are called, as "module function", in order; machine code is not one."""
    found = [] if found is None else found

    def note(frame: FrameType, event: str, given: Any) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("freshviews.") and module != CALLS:
            found.append(f"{module.removeprefix('freshviews.')} {frame.f_code.co_qualname}")

    # A collection would call functions that free databases of other tests.
    gc.collect()
    gc.disable()
    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
        gc.enable()
    return found


CALLS = "freshviews.kernel.machine.functions"
"""The module whose functions call machine code."""


@pytest.fixture(autouse=True)
def _usual_handler() -> Iterator[None]:
    """Signals have the handlers of Python: where Spark has run in the process, some have others, and a batch two more
    calls."""
    usual = dict(zip(interrupts._SIGNALS, interrupts._USUAL, strict=True))
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, signal.SIG_DFL if handler is None else handler)


DIRECT = ["engine.database Database.insert", "engine.commit.direct Direct.put", "engine.commit.direct Direct.commit"]


@pytest.mark.skipif(PURE_PYTHON, reason="kernels are Python functions then")
def test_an_insert_of_one_row_takes_the_direct_way() -> None:
    # How often a batch looks at free memory depends on the machine: here never.
    with Database(spare_memory=0) as db:
        db.execute(SCRIPT)
        db.insert("orders", [(1, date(2026, 2, 2))])
        found = called(lambda: db.insert("orders", [(2, date(2026, 2, 2))]))
    assert len({name.split()[0] for name in found}) <= 5, found
    assert len(found) <= 12, '\n'.join(found)
    assert [name for name in found if name in DIRECT] == DIRECT


@pytest.mark.parametrize("way", ["General", "Direct"])
def test_the_general_and_the_direct_way_of_a_batch_take_the_same_steps(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if way == "General":
        monkeypatch.setattr(database, "direct_of", lambda *_: None)
    module = f"engine.commit.{'commit' if way == 'General' else 'direct'} {way}"
    steps = [f"{module}.{step}" for step in ("add", "changes", "record")]
    steps = ["engine.commit.commit commit", *steps, "store.directory Directory.append", f"{module}.settle"]
    with Database(tmp_path) as db:
        db.execute(SCRIPT)
        db.insert("orders", [(1, date(2026, 2, 2))])
        found = called(lambda: db.insert("orders", [(2, date(2026, 2, 2))]))
        assert [name for name in found if name in steps] == steps
        monkeypatch.setattr(Directory, "append", _full)
        found.clear()
        with pytest.raises(StoreError):
            called(lambda: db.insert("orders", [(3, date(2026, 2, 2))]), found)
        back = f"{module}.take_back"
        assert [name for name in found if name in (*steps, back)] == [*steps[:4], back]
        assert db.version == 2 and len(list(db.table("orders"))) == 2


def _full(*_: object) -> None:
    raise StoreError("no space is left")


@pytest.mark.skipif(PURE_PYTHON, reason="kernels are Python functions then")
def test_a_general_batch_calls_functions_in_the_documented_order(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "direct_of", lambda *_: None)
    with Database(spare_memory=0) as db:
        db.execute(SCRIPT)
        db.insert("orders", [(1, date(2026, 2, 2))])
        db.insert("items", [(1, "bolt", 3)])
        found = called(lambda: db.insert("items", [(1, "bolt", 4)]))
        assert db.view("by_part")["bolt"] == ("bolt", 2, 7)
    assert len({name.split()[0] for name in found}) <= 18, sorted({name.split()[0] for name in found})
    assert len(set(found)) <= 55, '\n'.join(dict.fromkeys(found))
    assert [name for name in found if name in STEPS] == STEPS
