"""Converts aggregates over users' rings to JSON and back, for checkpoints.

So a command can read a checkpoint without importing the modules in which users define their rings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from freshviews.catalog.rings import RingAggregate, remember
from freshviews.errors import StoreError
from freshviews.ring import RecordedRing
from freshviews.ring.formula import Branch, Formula, Node, Tree
from freshviews.types import SqlType

Json = dict[str, Any]


def aggregate_to_json(aggregate: RingAggregate) -> Json:
    """An aggregate as values of JSON."""
    ring = aggregate.ring
    return {
        "name": aggregate.name,
        "arguments": [_type(one) for one in aggregate.arguments],
        "results": [[name, _type(one)] for name, one in aggregate.results],
        "single": aggregate.is_single,
        "family": aggregate.family,
        "label": ring.label,
        "size": ring.size,
        "kinds": ring.kinds,
        "lifts": [_formula(one) for one in ring.lifts],
        "product": None if ring.product is None else _formula(ring.product),
        "sum": _formula(ring.sum),
        "multiple": _formula(ring.multiple),
        "one": ring.one,
        "value": _formula(ring.value),
    }


def aggregate_from_json(held: Json) -> RingAggregate:
    """The aggregate that was written; it also makes this process know the ring. Raises StoreError for another format,
    or for a ring that this release computes otherwise."""
    try:
        ring = RecordedRing(
            held["label"],
            held["size"],
            tuple(held["kinds"]),
            tuple(map(_formula_of, held["lifts"])),
            None if held["product"] is None else _formula_of(held["product"]),
            _formula_of(held["sum"]),
            _formula_of(held["multiple"]),
            tuple(held["one"]),
            _formula_of(held["value"]),
        )
        arguments = tuple(SqlType(*one) for one in held["arguments"])
        results = tuple((name, SqlType(*one)) for name, one in held["results"])
        found = RingAggregate(held["name"], arguments, results, held["single"], ring)
    except (KeyError, TypeError) as error:
        raise StoreError(
            f"a stored ring cannot be read: {error!r}; open the database with the release that wrote it"
        ) from error
    if found.family != held["family"]:
        raise StoreError(
            f"ring {found.name} was stored as {held['family']}, but this release reads {found.family}; open the "
            "database with the release that stored the ring"
        )
    remember(found)
    return found


def aggregates_in(held: Mapping[str, Json]) -> dict[str, RingAggregate]:
    """The aggregates that were written, by name. See ``aggregate_from_json``."""
    return {name: aggregate_from_json(one) for name, one in held.items()}


def _type(one: SqlType) -> list[str | int]:
    return [one.name, one.precision, one.scale]


def _formula(one: Formula) -> Json:
    nodes = [[node.op, node.args, node.kind] for node in one.nodes]
    return {"parameters": one.parameters, "nodes": nodes, "tree": _tree(one.tree)}


def _tree(tree: Tree) -> Any:
    return [tree.test, _tree(tree.yes), _tree(tree.no)] if isinstance(tree, Branch) else {"of": tree}


def _formula_of(held: Json) -> Formula:
    nodes = tuple(Node(op, tuple(args), kind) for op, args, kind in held["nodes"])
    return Formula(tuple(held["parameters"]), nodes, _tree_of(held["tree"]))


def _tree_of(held: Any) -> Tree:
    return tuple(held["of"]) if isinstance(held, dict) else Branch(held[0], _tree_of(held[1]), _tree_of(held[2]))
