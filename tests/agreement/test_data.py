"""Statements that change rows do to tables and views what they do in DuckDB."""

from __future__ import annotations

from collections import Counter
from typing import Any

import duckdb
import pytest

import freshviews as fv
from tests.agreement.choices import seeded
from tests.agreement.duckdb_peer import comparable
from tests.agreement.sql_data import TABLES, VIEWS, definitions, statement

pytestmark = pytest.mark.plain_python
STEPS = 25


def contents(rows: Any) -> Counter[Any]:
    return Counter(map(comparable, rows))


@pytest.mark.parametrize("seed", range(8))
def test_random_data_statements_have_the_same_effect_as_in_duckdb(seed: int) -> None:
    choose = seeded(seed)
    held: dict[str, Counter[Any]] = {name: Counter() for name in VIEWS}
    with duckdb.connect() as peer, fv.Database() as db:
        peer.execute(definitions(duck=True))
        db.execute(definitions(duck=False))
        for name in VIEWS:
            db.view(name).subscribe(lambda change, name=name: held[name].update(dict(change)))
        for _ in range(STEPS):
            text, version = statement(choose), db.version
            try:
                count = peer.execute(text.duck).fetchone()
            except duckdb.ConstraintException:
                with pytest.raises(fv.BatchError):
                    db.execute(text.spark)
                assert db.version == version
                continue
            found = db.execute(text.spark)
            assert count is not None and found.rows == count[0], text.spark
            assert db.version == version + (found.rows > 0)
            for table in TABLES:
                expected = contents(peer.execute(f"SELECT * FROM {table}").fetchall())
                assert contents(db.table(table)) == expected, text.spark
            for name in VIEWS:
                rows = contents(db.view(name))
                assert rows == contents(peer.execute(f"SELECT * FROM {name}").fetchall()), text.spark
                assert contents((+held[name]).elements()) == rows
