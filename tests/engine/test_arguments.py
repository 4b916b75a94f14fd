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

pytestmark = pytest.mark.plain_python(only=True)

WRONG = (None, 3, -1, 1.5, "", " ", "\0", b"x", [], [None], {"a": 1}, object(), ("t", 3), Path("nowhere"), len, "items")

SCRIPT = (
    "CREATE TABLE items (part STRING, qty INT, PRIMARY KEY (part));"
    "CREATE MATERIALIZED VIEW by_part AS SELECT part, SUM(qty) AS qty FROM items GROUP BY part;"
    "CREATE TABLE sales (part STRING NOT NULL, color STRING NOT NULL, qty INT NOT NULL, price INT NOT NULL)"
)


def database() -> fv.Database:
    db = fv.Database()
    db.execute(SCRIPT)
    db.insert("items", [("bolt", 3), ("nut", 5), ("nail", 7)])
    rows = [("bolt", "red", 3, 2), ("nut", "red", 5, 7), ("bolt", "blue", 6, 3), ("nut", "blue", 8, 9)]
    db.insert("sales", [*rows, ("nail", "red", 1, 4), ("nail", "blue", 2, 8)])
    return db


def right_arguments(folder: Path, db: fv.Database) -> dict[str, Any]:
    """An accepted value, by name of a parameter."""
    return {
        "table": "items", "rows": [("screw", 1)], "changes": [("screw", 1, 1)], "view": "by_part", "name": "by_part",
        "sql": "CREATE TABLE other (a INT)", "text": "v(p) <- items(p, q).", "statements": [], "properties": {},
        "strategies": False, "folder": folder / "image", "sync": True, "path": None, "sync_seconds": None,
        "snapshot_bytes": 5, "threads": 1, "spare_memory": 0, "callback": len, "verify": False, "replayed": False,
        "keys": pa.table({"part": ["bolt"]}), "database": db, "source": "sales", "variables": ["qty"],
        "features": ["qty"], "target": "qty", "by": "part", "categories": ["part"], "components": None, "degree": 1,
        "fit_intercept": True, "root": None, "model": None, "penalty": 1.0, "on_change": len, "unknown": "zero",
        "frame": {name: [1] for name in ("part", "color", "qty", "price")}, "most": 1, "key": "bolt", "prefix": "bolt",
        "query": "SELECT part FROM items",
    }  # fmt: skip


def change_of(db: fv.Database) -> fv.Change:
    caught: list[fv.Change] = []
    db.view("by_part").subscribe(caught.append)
    db.insert("items", [("washer", 1)])
    return caught[0]


NUMBERS, WORDS = ["qty", "price"], ["part", "color"]
OBJECTS: dict[str, Callable[[fv.Database], Any]] = {
    "Database": lambda db: db,
    "View": lambda db: db.view("by_part"),
    "Table": lambda db: db.table("items"),
    "Batch": lambda db: db.batch(),
    "Change": change_of,
    "Answer": lambda db: db.sql("SELECT part, qty FROM items"),
    "Explanation": lambda db: db.view("by_part").explain(),
    "Changes": lambda db: db.view("by_part").changes(),
    "Subscription": lambda db: db.view("by_part").subscribe(len),
    "LinearRegression": lambda db: learn.LinearRegression(db, "sales", ["price"], "qty", name="m"),
    "Ridge": lambda db: learn.Ridge(db, "sales", ["price"], "qty", categories=["color"], name="m"),
    "PCA": lambda db: learn.PCA(db, "sales", NUMBERS, name="m"),
    "LinearDiscriminant": lambda db: learn.LinearDiscriminant(db, "sales", ["qty"], "color", name="m"),
    "MutualInformation": lambda db: learn.MutualInformation(db, "sales", WORDS, name="m"),
    "ChowLiuTree": lambda db: learn.ChowLiuTree(db, "sales", WORDS, name="m"),
    "CountsView": lambda db: learn.CountsView(db, "sales", WORDS, "m"),
    "MomentsView": lambda db: learn.MomentsView(db, "sales", NUMBERS, "m"),
    "GroupedMomentsView": lambda db: learn.GroupedMomentsView(db, "sales", NUMBERS, "color", "m"),
    "EncodedMomentsView": lambda db: learn.EncodedMomentsView(db, "sales", ["price"], WORDS, "qty", "m"),
    "Baseline": lambda db: learn.Baseline(learn.MomentsView(db, "sales", NUMBERS, "m")),
    "Drift": lambda db: learn.Baseline(learn.MomentsView(db, "sales", NUMBERS, "m")).drift(),
}
"""By public class with methods, a function that makes an object of it."""

NOT_MADE = {
    "Answer", "Batch", "Change", "Changes", "Explanation", "Recovery", "Stats", "Subscription", "Table", "View",
    "Counts", "Drift", "Edge", "EncodedMoments", "Moments", "Progress", "RowCounts", "UserRing",
}  # fmt: skip
"""Public classes whose constructor checks nothing: methods return them, and ``register_ring`` checks a UserRing."""


def public() -> Iterator[tuple[str, Any]]:
    """All public functions and classes, without errors."""
    for module in (fv, learn):
        for name in module.__all__:
            found = getattr(module, name)
            if not (isinstance(found, type) and issubclass(found, BaseException)):
                yield name, found


def methods_of(kind: type) -> list[str]:
    own = [vars(base) for base in kind.__mro__ if base.__module__.startswith("freshviews")]
    names = [name for name in dir(kind) if not name.startswith("_") and any(name in one for one in own)]
    return [name for name in names if callable(getattr(kind, name))]


def doors() -> Iterator[str]:
    """All public functions and constructors, and all methods of objects."""
    for name, found in public():
        if name not in NOT_MADE:
            yield name
        if name in OBJECTS:
            yield from (f"{name}.{method}" for method in methods_of(found))


def opened(door: str, db: fv.Database) -> Callable[..., Any]:
    """The function behind a door."""
    name, _, method = door.partition(".")
    return getattr(OBJECTS[name](db), method) if method else dict(public())[name]  # type: ignore[no-any-return]


def test_every_public_class_with_methods_is_tested() -> None:
    lacking = [n for n, found in public() if isinstance(found, type) and n not in OBJECTS and methods_of(found)]
    assert lacking == []


MAY_BE_ANYTHING = {
    ("Database.execute", "parameters"), ("Database.execute", "named"),
    ("Table.get", "default"), ("View.get", "default"),
    ("View.where", "values"),
}  # fmt: skip


def is_right(parameter: inspect.Parameter, value: object) -> bool:
    """Whether one of the wrong values is right for a parameter."""
    name, kind = parameter.name, str(parameter.annotation)
    if name == "parameters":
        return value is None or value == []
    if value is None:
        return "None" in kind or name in ("key", "prefix")
    if name in ("key", "prefix"):
        return isinstance(value, str)
    if isinstance(value, str) and value.strip() == "":
        return name == "sql" or (value == " " and "PathLike" in kind)
    if isinstance(value, str) and value == "items":
        return name in ("table", "sql", "text", "source", "target", "by", "name", "folder", "path")
    if isinstance(value, Path):
        return "PathLike" in kind
    if isinstance(value, list) and value == []:
        return name in ("rows", "changes", "statements", "categories", "features")
    if value is len:
        return name in ("callback", "on_change")
    if value == 3:
        return kind.startswith(("int", "float")) or name in ("spare_memory", "threads", "sync_seconds")
    return value == 1.5 and "float" in kind


@pytest.mark.parametrize("door", list(doors()))
def test_a_wrong_argument_raises_an_error_of_freshviews(door: str, tmp_path: Path) -> None:
    problems = []
    db = database()
    call, right = opened(door, db), right_arguments(tmp_path, db)
    parameters = inspect.signature(call).parameters
    if door[:1].isupper() and "." not in door:
        right["name"] = "other"
    for value in WRONG:
        for wrong, parameter in parameters.items():
            if (door, wrong) in MAY_BE_ANYTHING or is_right(parameter, value):
                continue
            given = {n: right[n] for n in parameters if n in right}
            try:
                made = call(**given | {wrong: value})
                if isinstance(made, Iterator) and not isinstance(made, fv.Changes):  # It waits for changes.
                    list(made)
                problems.append(f"{wrong}={value!r}: accepted")
            except fv.FreshviewsError as error:
                if not str(error):
                    problems.append(f"{wrong}={value!r}: no message")
            except Exception as error:
                problems.append(f"{wrong}={value!r}: {type(error).__name__}: {error}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("method", ["insert", "delete", "apply"])
def test_the_error_of_swapped_arguments_names_the_argument(method: str) -> None:
    db = database()
    for given in (db, db.batch()):
        with pytest.raises(fv.FreshviewsError, match="the name of a table must be a str"):
            getattr(given, method)([("screw", 1)], "items")


def test_the_error_of_an_unknown_arrow_column_names_the_column() -> None:
    db = fv.Database()
    db.execute("CREATE TABLE t (a INT)")
    with pytest.raises(fv.BatchError, match="there is no column x"):
        db.insert("t", pa.table({"x": [1]}))
