"""DuckDB with all cores: recomputing the view, or maintaining it by first-order delta SQL."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp

from benchmarks.measuring.answers import answer_of
from benchmarks.measuring.course import Course
from benchmarks.measuring.stream import Stream


def recompute(stream: Stream) -> dict[str, Any]:
    """Append each batch, and recompute the answer at the points of comparison.

    Recomputing after every batch would take hours. The time is that of the sampled steps, append and query, and the
    rate is that of their rows.
    """
    db = _connected(stream)
    course = Course(stream, sampled=stream.compared)
    for i, step in course:
        sampled = i in course.compared
        if sampled:
            course.go()
        for sign, rows in step.parts:
            _change(db, stream, step.table, sign, rows)
        if sampled:
            found = _arrow(db.execute(stream.view))
            course.stop()
            course.answers[str(i)] = answer_of(found)
    return course.result(sampled_steps=len(course.compared))


def first_order(stream: Stream) -> dict[str, Any]:
    """Maintain the view in a table: for each batch, the statements of ``Delta``, then the change of the base table."""
    try:
        delta = Delta(stream)
    except NotWritten as error:
        return {"missing": f"no delta SQL: {error}"}
    db = _connected(stream)
    for statement in delta.create:
        db.execute(statement)
    course = Course(stream)
    for i, step in course:
        # Signed rows, prepared before the clock starts.
        parts = [rows.append_column("m", _filled(len(rows), sign)) for sign, rows in step.parts]
        course.go()
        for number, rows in enumerate(parts):
            db.register("batch", rows)
            create = "CREATE OR REPLACE TEMP TABLE delta AS" if number == 0 else "INSERT INTO delta"
            db.execute(f"{create} SELECT * FROM batch")
            db.unregister("batch")
        for statement in delta.statements[step.table]:
            db.execute(statement)
        for sign, rows in step.parts:
            _change(db, stream, step.table, sign, rows)
        course.stop()
        if i in course.compared:
            course.go()
            found = _arrow(db.execute(delta.read))
            course.stop()
            course.answers[str(i)] = answer_of(found)
    return course.result()


def _arrow(found: Any) -> pa.Table:
    """The Arrow table of a query, under DuckDB 1 and 2."""
    read = getattr(found, "to_arrow_table", None) or found.fetch_arrow_table
    table: pa.Table = read()
    return table


def _filled(rows: int, sign: int) -> Any:
    return pa.array([sign] * rows, pa.int64())


def _connected(stream: Stream) -> Any:
    db = duckdb.connect()
    for relation in stream.relations:
        db.execute(relation.plain_ddl())
    return db


def _change(db: Any, stream: Stream, table: str, sign: int, rows: Any) -> None:
    db.register("batch", rows)
    if sign > 0:
        db.execute(f"INSERT INTO {table} SELECT * FROM batch")
    else:
        keys = ", ".join(stream.relation(table).identity)
        db.execute(f"DELETE FROM {table} WHERE ({keys}) IN (SELECT ({keys}) FROM batch)")
    db.unregister("batch")


DERIVED = "derivations"
"""The column that counts the derivations of a row of the view."""
KNOWN = "_known"
"""Suffix of the column that counts the non-NULL values of a SUM."""


class NotWritten(Exception):
    """The view is not a join with COUNT and SUM, for which this delta is defined."""


class Delta:
    """The SQL that a user of DuckDB would write to maintain a join with COUNT and SUM by its first-order delta.

    The delta of a join in a table that occurs k times has k parts: in the i-th, the i-th occurrence is the batch,
    those before it are the table with the batch, those after it the table without. Each is a SELECT with GROUP BY
    that multiplies the multiplicities ``m``; INSERT ... ON CONFLICT adds their sum to the stored table ``kept``.
    """

    def __init__(self, stream: Stream) -> None:
        tree = sqlglot.parse_one(stream.view, read="duckdb")
        refused = (exp.Subquery, exp.Having, exp.With, exp.Union, exp.Min, exp.Max, exp.Avg)
        for kind in refused:
            if not isinstance(tree, exp.Select) or tree.find(kind):
                raise NotWritten(f"the view has {kind.__name__.upper()}")
        if any(join.side or (join.args.get("using") and join.side) for join in tree.find_all(exp.Join)):
            raise NotWritten("the view has an outer join")
        if len(list(tree.find_all(exp.Select))) > 1:
            raise NotWritten("the view has a nested SELECT")
        self._tree = tree
        self._distinct = tree.args.get("distinct") is not None
        self._columns = [(item.alias_or_name, item.unalias()) for item in tree.selects]
        self._sums = {name: item for name, item in self._columns if item.find(exp.AggFunc)}
        for item in self._sums.values():
            if not isinstance(item, exp.Count | exp.Sum) or item.find(exp.Distinct):
                raise NotWritten(f"{item.sql()} is neither a COUNT nor a SUM")
            if isinstance(item, exp.Count) and not isinstance(item.this, exp.Star):
                raise NotWritten(f"{item.sql()} is not COUNT(*)")
        self._keys = {name: item for name, item in self._columns if name not in self._sums}
        self._write({relation.name for relation in stream.relations})

    def _write(self, tables: set[str]) -> None:
        keys = list(self._keys)
        sums = [name for item in self._sums for name in self._kept(item)]
        key = f"PRIMARY KEY ({', '.join(keys)})" if keys else ""
        occurrences = [table.name for table in self._tree.find_all(exp.Table)]
        parts = {name: self._parts(name) for name in tables}
        any_table = next(name for name in tables if name in occurrences)
        self.create = [
            # Run over empty tables for the types of the columns.
            f"CREATE TEMP TABLE delta AS SELECT *, 1::BIGINT AS m FROM {any_table} LIMIT 0",
            f"CREATE TABLE kept AS {parts[any_table][0]}",
            *([f"ALTER TABLE kept ADD {key}"] if key else ["DELETE FROM kept"]),
            *([] if keys else [f"INSERT INTO kept VALUES ({', '.join('0' for _ in (*sums, DERIVED))})"]),
        ]
        self.create.append("CREATE TEMP TABLE change AS SELECT * FROM kept LIMIT 0")
        added = ", ".join(f"{name} = kept.{name} + x.{name}" for name in (*sums, DERIVED))
        if keys:
            total = ", ".join([*keys, *(f"SUM({column}) AS {column}" for column in (*sums, DERIVED))])
            merge = [
                f"INSERT INTO kept SELECT {total} FROM change GROUP BY {', '.join(keys)} "
                f"HAVING {' OR '.join(f'SUM({column}) <> 0' for column in (*sums, DERIVED))} "
                f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {added.replace('x.', 'excluded.')}",
                f"DELETE FROM kept WHERE {DERIVED} = 0",
            ]
        else:
            total = ", ".join(f"COALESCE(SUM({column}), 0) AS {column}" for column in (*sums, DERIVED))
            merge = [f"UPDATE kept SET {added} FROM (SELECT {total} FROM change) x"]
        # A statement for each part: DuckDB 2.0.0 computes wrong sums for a UNION ALL of the four parts of a path of
        # four edges, but right ones for each alone.
        self.statements = {
            name: ["DELETE FROM change", *(f"INSERT INTO change {select}" for select in selects), *merge]
            for name, selects in parts.items()
        }
        outputs = ", ".join(self._output(name) for name, _ in self._columns)
        self.read = f"SELECT {outputs} FROM kept" + ("" if sums or self._distinct else f", range({DERIVED}::BIGINT)")

    def _kept(self, name: str) -> tuple[str, ...]:
        """The stored columns of an aggregate."""
        return (name, name + KNOWN) if isinstance(self._sums[name], exp.Sum) else (name,)

    def _output(self, name: str) -> str:
        if isinstance(self._sums.get(name), exp.Sum):
            return f"CASE WHEN {name}{KNOWN} = 0 THEN NULL ELSE {name} END AS {name}"
        return name

    def _parts(self, table: str) -> list[str]:
        """A SELECT for each occurrence of a table."""
        count = sum(found.name == table for found in self._tree.find_all(exp.Table))
        return [self._part(table, i) for i in range(count)]

    def _part(self, table: str, changed: int) -> str:
        tree = self._tree.copy()
        signs = []
        # In the order of FROM, not of the syntax tree.
        places = [tree.args.get("from_") or tree.args["from"], *(tree.args.get("joins") or [])]
        found = [place.this for place in places if place.this.name == table]
        for i, place in enumerate(found):
            alias = place.alias_or_name
            if i == changed:
                place.replace(sqlglot.parse_one(f"SELECT * FROM delta AS {alias}").find(exp.Table))
                signs.append(f"{alias}.m")
            elif i < changed:
                new = f"(SELECT *, 1::BIGINT AS m FROM {table} UNION ALL SELECT * FROM delta) AS {alias}"
                place.replace(sqlglot.parse_one(f"SELECT * FROM {new}", read="duckdb").find(exp.Subquery))
                signs.append(f"{alias}.m")
        product = " * ".join(signs)
        columns = [f"{item.sql('duckdb')} AS {name}" for name, item in self._keys.items()]
        for name, item in self._sums.items():
            if isinstance(item, exp.Count):
                columns.append(f"SUM({product}) AS {name}")
                continue
            value = item.this.sql("duckdb")
            columns.append(f"COALESCE(SUM({product} * ({value})), 0) AS {name}")
            columns.append(f"SUM(CASE WHEN ({value}) IS NULL THEN 0 ELSE {product} END) AS {name}{KNOWN}")
        columns.append(f"SUM({product}) AS {DERIVED}")
        tree.set("expressions", [sqlglot.parse_one(column, read="duckdb") for column in columns])
        tree.set("distinct", None)
        tree.set("group", None)
        text = tree.sql("duckdb")
        keys = ", ".join(str(i + 1) for i in range(len(self._keys)))
        return f"{text} GROUP BY {keys}" if keys else text
