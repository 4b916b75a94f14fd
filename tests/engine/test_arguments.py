"""Every public function refuses wrong arguments with an error of freshviews. New ones are found by introspection."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import freshviews as fv
from freshviews import learn

WRONG = (None, 3, -1, 1.5, "", " ", "\0", b"x", [], [None], {"a": 1}, object(), ("t", 3), Path("nowhere"), len, "items")

SCRIPT = (
    "CREATE TABLE items (part STRING, qty INT, PRIMARY KEY (part));"
    "CREATE MATERIALIZED VIEW by_part AS SELECT part, SUM(qty) AS qty FROM items GROUP BY part"
)


def database() -> fv.Database:
    db = fv.Database()
    db.execute(SCRIPT)
    db.insert("items", [("bolt", 3), ("nut", 5), ("nail", 7)])
    return db


def right_arguments(folder: Path) -> dict[str, Any]:
    """By name of a parameter, a value that is accepted."""
    return {
        "table": "items", "rows": [("screw", 1)], "changes": [("screw", 1, 1)], "view": "by_part", "name": "by_part",
        "sql": "CREATE TABLE other (a INT)", "text": "v(p) <- items(p, q).", "statements": [], "properties": {},
        "strategies": False, "folder": folder / "image", "sync": True, "path": None, "sync_seconds": None,
        "snapshot_bytes": 5, "threads": 1, "spare_memory": 0, "callback": len, "verify": False, "replayed": False,
        "keys": pa.table({"part": ["bolt"]}), "database": database(), "source": "items", "variables": ["qty"],
        "features": ["qty"], "target": "qty", "by": "part", "categories": ["part"], "components": None, "degree": 1,
        "fit_intercept": True, "root": None, "model": None, "penalty": 1.0,
    }  # fmt: skip


def doors(db: fv.Database) -> Iterator[tuple[str, Callable[..., Any]]]:
    """All public functions, and methods of objects, by name."""
    caught: list[fv.Change] = []
    subscription = db.view("by_part").subscribe(caught.append)
    db.insert("items", [("washer", 1)])
    objects = (db, db.view("by_part"), db.table("items"), db.batch(), caught[0], subscription)
    for one in objects:
        for name in dir(type(one)):
            if not name.startswith("_") and callable(getattr(type(one), name)):
                yield f"{type(one).__name__}.{name}", getattr(one, name)
    yield "Database", fv.Database
    yield "register_ring", fv.register_ring
    made = (learn.CountsView, learn.MomentsView, learn.GroupedMomentsView, learn.EncodedMomentsView, learn.Ridge)
    for kind in (*made, learn.LinearRegression, learn.PCA, learn.LinearDiscriminant, learn.ChowLiuTree, learn.Baseline):
        yield kind.__name__, kind


def names() -> list[str]:
    return [name for name, _ in doors(database())]


MAY_BE_ANYTHING = {("Database.execute", "parameters"), ("Database.execute", "named")}


def is_right(parameter: inspect.Parameter, value: object) -> bool:
    """Whether one of the wrong values is right for a parameter."""
    name, kind = parameter.name, str(parameter.annotation)
    if value is None:
        return "None" in kind
    if isinstance(value, str) and value.strip() == "":
        return name == "sql" or (value == " " and "PathLike" in kind)
    if isinstance(value, str) and value == "items":
        return name in ("table", "sql", "text", "source", "target", "by", "name", "folder", "path")
    if isinstance(value, Path):
        return "PathLike" in kind
    if isinstance(value, list) and value == []:
        return name in ("rows", "changes", "statements", "categories")
    if value is len:
        return name == "callback"
    if value == 3:
        return kind.startswith(("int", "float")) or name in ("spare_memory", "threads", "sync_seconds")
    return value == 1.5 and "float" in kind


@pytest.mark.parametrize("door", names())
def test_a_wrong_argument_is_refused_by_an_error_of_ours(door: str, tmp_path: Path) -> None:
    problems = []
    for value in WRONG:
        parameters = inspect.signature(dict(doors(database()))[door]).parameters
        for wrong, parameter in parameters.items():
            if (door, wrong) in MAY_BE_ANYTHING or is_right(parameter, value):
                continue
            right = right_arguments(tmp_path)
            call = dict(doors(database()))[door]
            given = {n: right[n] for n in parameters if n in right}
            try:
                made = call(**given | {wrong: value})
                if isinstance(made, Iterator):
                    list(made)
                problems.append(f"{wrong}={value!r}: accepted")
            except fv.FreshviewsError as error:
                if not str(error):
                    problems.append(f"{wrong}={value!r}: no message")
            except Exception as error:
                problems.append(f"{wrong}={value!r}: {type(error).__name__}: {error}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("method", ["insert", "delete", "apply"])
def test_swapped_arguments_name_the_argument(method: str) -> None:
    db = database()
    for given in (db, db.batch()):
        with pytest.raises(fv.FreshviewsError, match="a table is given by its name"):
            getattr(given, method)([("screw", 1)], "items")


def test_an_arrow_column_that_a_table_of_one_column_lacks_is_named() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (a INT)")
    with pytest.raises(fv.BatchError, match="there is no column x"):
        db.insert("t", pa.table({"x": [1]}))
