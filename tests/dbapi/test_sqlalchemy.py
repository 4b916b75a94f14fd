"""SQLAlchemy reads tables and views by a dialect of its own, and pandas by SQLAlchemy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="DuckDB is not installed; pip install 'freshviews[sql]'")
pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed; pip install sqlalchemy")

import sqlalchemy as sa
from sqlalchemy.dialects import registry

import freshviews as fv
from freshviews import dbapi
from tests.dbapi.test_reading import ROWS, SCRIPT

pytestmark = pytest.mark.plain_python(only=True)

# An installed freshviews has this as an entry point.
registry.register("freshviews", "freshviews.dbapi.dialect", "FreshviewsDialect")


@pytest.fixture
def db() -> Iterator[fv.Database]:
    with fv.Database() as made:
        made.execute(SCRIPT + "CREATE VIEW parts AS SELECT part FROM by_part")
        made.insert("items", ROWS)
        yield made


@pytest.fixture
def engine(db: fv.Database) -> sa.Engine:
    return sa.create_engine("freshviews://", creator=lambda: dbapi.connect(db))


def test_tables_views_columns_and_keys_are_reflected(engine: sa.Engine) -> None:
    found = sa.inspect(engine)
    assert (found.get_table_names(), found.get_view_names()) == (["items"], ["by_part", "parts"])
    assert found.has_table("BY_PART") and not found.has_table("nothing")
    columns = {one["name"]: (str(one["type"]), one["nullable"]) for one in found.get_columns("items")}
    assert columns == {
        "id": ("INTEGER", False), "part": ("TEXT", False), "price": ("DECIMAL(8, 2)", True), "day": ("DATE", True),
        "at": ("TIMESTAMP", True), "ok": ("BOOLEAN", True), "weight": ("DOUBLE", True),
    }  # fmt: skip
    assert found.get_pk_constraint("items")["constrained_columns"] == ["id"]
    assert (found.get_foreign_keys("items"), found.get_indexes("items")) == ([], [])
    with pytest.raises(sa.exc.NoSuchTableError):
        found.get_columns("nothing")


def test_sqlalchemy_expressions_return_the_expected_rows(engine: sa.Engine) -> None:
    meta = sa.MetaData()
    by_part, items = sa.Table("by_part", meta, autoload_with=engine), sa.Table("items", meta, autoload_with=engine)
    joined = (
        sa.select(items.c.id, by_part.c.n, (by_part.c.n * 2).label("twice"))
        .join(by_part, items.c.part == by_part.c.part)
        .where(items.c.id.in_([1, 2, 9]), by_part.c.n >= sa.bindparam("least"))
        .order_by(items.c.id.desc())
    )
    with engine.connect() as connection:
        assert connection.execute(joined, {"least": 1}).all() == [(2, 1, 2), (1, 2, 4)]
        assert connection.execute(sa.select(items.c.id).order_by(items.c.id).limit(1).offset(1)).scalar() == 2
        assert connection.execute(sa.select(items).where(items.c.id == 1)).one() == ROWS[0]
        count = sa.select(sa.func.count(), sa.func.sum(items.c.weight)).select_from(items)
        assert connection.execute(count).one() == (3, 1.5)
        assert connection.execute(sa.text("SELECT n FROM by_part WHERE part = :part"), {"part": "nut"}).scalar() == 1


def test_sqlalchemy_creates_tables_and_changes_rows(db: fv.Database, engine: sa.Engine) -> None:
    notes = sa.Table(
        "notes", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("text", sa.String), sa.Column("short", sa.String(3)), sa.Column("at", sa.DateTime),
        sa.Column("price", sa.Numeric(8, 2)), sa.Column("x", sa.Float), sa.Column("ok", sa.Boolean),
    )  # fmt: skip
    notes.metadata.create_all(engine)
    with engine.begin() as connection:
        connection.execute(notes.insert(), [{"id": n, "text": f"`{n}`", "x": n / 2} for n in range(50)])
        assert connection.execute(notes.update().where(notes.c.id < 5).values(ok=True)).rowcount == 5
        assert connection.execute(notes.delete().where(notes.c.id == 7)).rowcount == 1
    assert db.version == 4 and len(db.table("notes")) == 49
    assert str(db.table("notes").schema.field("at").type) == "timestamp[us]"


def test_pandas_reads_and_writes_tables_through_sqlalchemy(db: fv.Database, engine: sa.Engine) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    found = pandas.read_sql("SELECT part, n FROM by_part ORDER BY part", engine)
    assert found.to_dict("list") == {"part": ["bolt", "nut"], "n": [2, 1]}
    assert pandas.read_sql_table("by_part", engine).shape == (2, 3)
    frame = pandas.DataFrame({"name": ["a", "b"], "points": [1, 2], "at": pandas.to_datetime(["2026-01-31", None])})
    frame.to_sql("scores", engine, index=False)
    assert [field.name for field in db.table("scores").schema] == ["name", "points", "at"]
    assert pandas.read_sql("SELECT * FROM scores ORDER BY name", engine).equals(frame)


def test_a_sqlalchemy_url_names_the_directory_of_a_database(tmp_path: Path) -> None:
    engine = sa.create_engine(f"freshviews:///{tmp_path / 'shop'}?sync=interval")
    with engine.connect() as connection:
        connection.execute(sa.text("CREATE TABLE items (id INT)"))
        assert connection.execute(sa.text("SELECT COUNT(*) FROM items")).scalar() == 0
    engine.dispose()
    with fv.Database(tmp_path / "shop") as db:
        assert db.tables == ("items",)


def test_a_sqlalchemy_error_wraps_the_pep_249_error(engine: sa.Engine) -> None:
    with engine.connect() as connection, pytest.raises(sa.exc.ProgrammingError) as error:
        connection.execute(sa.text("SELECT nothing FROM items"))
    cause: Any = error.value.orig
    assert isinstance(cause, dbapi.ProgrammingError) and cause.cause.line == 1
