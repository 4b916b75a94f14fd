"""ALTER TABLE in a process that is killed: the statement counts as a whole or not at all."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import freshviews as fv
from freshviews.store import crash_points as steps
from tests.store.killing import killed_at

SCRIPT = "CREATE TABLE t (a INT, s STRING); CREATE MATERIALIZED VIEW v AS SELECT * FROM t"
ROWS = [(1, "a"), (1, "a"), (2, None)]
NEW = "ALTER TABLE t ADD COLUMN c STRING NOT NULL DEFAULT 'new'; CREATE MATERIALIZED VIEW w AS SELECT * FROM t"


def begun(path: Path) -> None:
    with fv.Database(path) as db:
        db.execute(SCRIPT)
        db.insert("t", ROWS)


def check(path: Path, grown: set[bool]) -> None:
    for _ in range(2):
        with fv.Database(path) as db:
            rows = Counter(db.table("t"))
            has = db.table("t").schema.names == ["a", "s", "c"]
            assert has in grown and Counter(db.view("v")) == Counter(ROWS)
            assert rows == Counter((*row, "new") if has else row for row in ROWS)
            assert ("w" in db.views) == has and (not has or Counter(db.view("w")) == rows)
            # Delete the rows inserted in the meantime.
            db.insert("t", [{"a": 3}])
            db.delete("t", [{"a": 3}])


@pytest.mark.parametrize("step", [step for step in steps.COMMIT if step.startswith("record")])
def test_a_killed_alter_table_takes_effect_completely_or_not_at_all(tmp_path: Path, step: str) -> None:
    begun(tmp_path)

    def work() -> None:
        fv.Database(tmp_path).execute(NEW)

    assert killed_at(step, 1, work)
    check(tmp_path, {"record half written": {False}, "record written": {False, True}}.get(step, {True}))


@pytest.mark.parametrize("step", steps.SNAPSHOT)
def test_added_columns_stay_if_the_next_snapshot_is_killed_at_any_step(tmp_path: Path, step: str) -> None:
    begun(tmp_path)
    with fv.Database(tmp_path) as db:
        db.snapshot()
        db.execute(NEW)

    def work() -> None:
        fv.Database(tmp_path).snapshot()

    assert killed_at(step, 1, work)
    check(tmp_path, {True})
