"""numpy: recomputes a cofactor from arrays, as a training program would: the join as a matrix, times itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.measuring.answers import answer
from benchmarks.measuring.course import Course
from benchmarks.measuring.stream import Stream

Columns = Mapping[str, np.ndarray]
"""The columns of a table by name, all of one length."""


def recompute(stream: Stream) -> dict[str, Any]:
    """Append each batch, and recompute the cofactor at the points of comparison, with all cores for the product.

    Only these steps are timed, and the rate is that of their rows. Integers are multiplied as doubles, which is exact
    while sums stay below 2^53. The peer accepts streams of inserts whose ``pattern`` describes a cofactor over a
    natural join.
    """
    if stream.pattern.get("name") != "cofactor" or any(step.sign != 1 for step in stream.steps):
        return {"missing": "no program with numpy for this view"}
    variables = list(stream.pattern["variables"])  # type: ignore[call-overload]
    parts: dict[str, list[Columns]] = {relation.name: [] for relation in stream.relations}
    whole = " DOUBLE" not in "".join(relation.columns for relation in stream.relations)
    course = Course(stream, sampled=stream.compared)
    for i, step in course:
        sampled = i in course.compared
        if sampled:
            course.go()
        columns = zip(step.rows.schema.names, step.rows.columns, strict=True)
        parts[step.table].append({name: column.to_numpy() for name, column in columns})
        if sampled:
            rows = joined({name: _whole(several) for name, several in parts.items()}, variables)
            found = cofactor(rows)
            course.stop()
            course.answers[str(i)] = answer([_as_sql(found, whole)])
    return course.result(sampled_steps=len(course.compared))


def _as_sql(found: np.ndarray, whole: bool) -> list[int | float | None]:
    """The numbers of a cofactor as in SQL: sums of no rows are NULL."""
    numbers = [int(x) if whole else float(x) for x in found[1:]]
    return [int(found[0]), *(numbers if found[0] else [None] * len(numbers))]


def _whole(parts: Sequence[Columns]) -> Columns:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}


def joined(tables: Mapping[str, Columns], variables: Sequence[str]) -> np.ndarray:
    """The variables, each ``table.column``, in the rows of the natural join of all tables; shape (variables, rows).

    Positions of rows are joined table by table, and columns are gathered once, at the end.
    """
    if not all(tables.values()):
        return np.zeros((len(variables), 0))
    places: dict[str, np.ndarray] = {}
    holder: dict[str, str] = {}
    for name, columns in tables.items():
        if not places:
            places = {name: np.arange(len(next(iter(columns.values()))))}
        else:
            common = [column for column in columns if column in holder]
            before = [tables[holder[column]][column][places[holder[column]]] for column in common]
            left, right = _packed(before, [columns[column] for column in common])
            order = np.argsort(right, kind="stable")
            sorted_keys = right[order]
            first = np.searchsorted(sorted_keys, left, "left")
            counts = np.searchsorted(sorted_keys, left, "right") - first
            begins = np.cumsum(counts) - counts
            within = np.arange(int(counts.sum())) - np.repeat(begins - first, counts)
            places = {other: np.repeat(place, counts) for other, place in places.items()} | {name: order[within]}
        for column in columns:
            holder.setdefault(column, name)
    found = np.empty((len(variables), len(next(iter(places.values())))))
    for i, variable in enumerate(variables):
        table, column = variable.split(".")
        found[i] = tables[table][column][places[table]]
    return found


def _packed(left: Sequence[np.ndarray], right: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Keys of several non-negative integer columns as one number each."""
    a, b = left[0], right[0]
    for x, y in zip(left[1:], right[1:], strict=True):
        most = 1 + max((int(one.max()) for one in (x, y) if len(one)), default=0)
        a, b = a * most + x, b * most + y
    return a, b


def cofactor(rows: np.ndarray) -> np.ndarray:
    """The count, the sums, and the sums of products by pair i <= j, of rows as columns, shape (variables, rows)."""
    products = rows @ rows.T
    return np.concatenate([[rows.shape[1]], rows.sum(axis=1), products[np.triu_indices(len(rows))]])
