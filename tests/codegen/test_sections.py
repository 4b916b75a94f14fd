"""A long source is written at the first batch, in one section per table; the table's first batch loads its section."""

from __future__ import annotations

from typing import Any

import pytest

from freshviews import Database
from freshviews.codegen import compiled_block, module

pytestmark = pytest.mark.plain_python(only=True)

SCRIPT = """
CREATE TABLE r (a BIGINT, b BIGINT); CREATE TABLE s (b BIGINT, c BIGINT); CREATE TABLE t (c BIGINT, d BIGINT);
CREATE MATERIALIZED VIEW v AS SELECT a, d FROM r JOIN s USING (b) JOIN t USING (c);
"""


def test_the_first_batch_loads_generated_code_of_its_table(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled_block, "LONG", 0)
    loaded: list[str] = []
    load = module._load
    monkeypatch.setattr(module, "_load", lambda source, digest: loaded.append(source) or load(source, digest))
    db = Database()
    db.execute(SCRIPT)
    assert not loaded
    for table, count in (("r", 1), ("s", 2), ("r", 2), ("t", 3)):
        db.insert(table, [(1, 1)])
        triggers = [source for source in loaded if "def on_" in source]
        assert len(triggers) == count
    assert sorted(db.view("v")) == [(1, 1), (1, 1)]
    db.delete("r", [(1, 1)])
    assert sorted(db.view("v")) == [(1, 1)]


def test_code_sections_for_a_join_of_twenty_tables_call_shared_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    load = module._load
    monkeypatch.setattr(module, "_load", lambda source, digest: loaded.append(source) or load(source, digest))
    db = Database()
    db.execute(";".join(f"CREATE TABLE t{i} (a{i} BIGINT, a{i + 1} BIGINT)" for i in range(20)))
    joins = " ".join(f"JOIN t{i} USING (a{i})" for i in range(1, 20))
    db.execute(f"CREATE MATERIALIZED VIEW v AS SELECT {', '.join(f'a{i}' for i in range(21))} FROM t0 {joins}")
    for i in range(20):
        db.insert(f"t{i}", [(i, i + 1), (i, -1)])
    assert len(loaded) > 20 and any("load_generated(" in source for source in loaded)
    assert sorted(db.view("v")) == [(*range(20), -1), tuple(range(21))]
    db.delete("t7", [(7, 8)])
    assert not list(db.view("v"))


def test_triggers_of_a_long_program_are_written_when_its_first_batch_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_block, "MANY_STATEMENTS", 1)
    db = Database()
    db.execute(SCRIPT)
    db.execute("CREATE TABLE q (a STRING, b DOUBLE)")
    db.execute("CREATE MATERIALIZED VIEW w AS SELECT a, SUM(b) AS s FROM q WHERE b > 1 OR b < 0.75 GROUP BY a")
    db.execute("CREATE MATERIALIZED VIEW u AS SELECT a, SUM(b) AS s FROM q WHERE a <> 'no' GROUP BY a")
    blocks = [one for view in ("v", "w") for one in db._relations.views[view].maintained.blocks]
    sources = [one.state.compiled.source for one in blocks]
    assert not any(source.is_written for source in sources)
    # String literals have codes from the beginning.
    assert db._relations.views["u"].maintained.blocks[0].state.compiled.source.is_written
    db.insert("q", [("no", 1.0), ("yes", 2.0), ("yes", 0.5)])
    assert list(db.view("w")) == [("yes", 2.5)] == list(db.view("u"))
    assert [source.is_written for source in sources] == [False, True]
    for table in "rst":
        db.insert(table, [(1, 1)])
    assert list(db.view("v")) == [(1, 1)]


def test_triggers_interrupted_while_being_written_are_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_block, "MANY_STATEMENTS", 1)
    db = Database()
    db.execute(SCRIPT)
    write, calls = compiled_block.write_trigger, iter(range(100))

    def interrupted(*args: Any, **named: Any) -> str:
        if next(calls) == 1:
            raise KeyboardInterrupt
        return write(*args, **named)

    monkeypatch.setattr(compiled_block, "write_trigger", interrupted)
    with pytest.raises(KeyboardInterrupt):
        db.insert("r", [(1, 1)])
    assert not list(db.view("v"))
    for table in "rst":
        db.insert(table, [(1, 1)])
    assert list(db.view("v")) == [(1, 1)]
