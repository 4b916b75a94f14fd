"""Stage 2e: ROLLUP, CUBE and GROUPING SETS: the sets that GROUP BY writes, and what a group is in a row of one.

What is a group is told by how it is written, over the columns of FROM, as in Spark: of ``(SELECT a AS x, a AS y ...)``
x and y are two groups, and a row may have the one and not the other. So a list is bound twice: first ``apart``, over
FROM's columns as columns by themselves, which tells the groups that it names; then over what the columns are, with a
reference where a group stands. Before that nothing may be decided by whether a group can be NULL, as each can be that
some set lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import prod

from sqlglot import exp

from freshviews.errors import SqlError
from freshviews.expr.nodes import Column, Expr, Literal
from freshviews.query.block import SET
from freshviews.sql import logic
from freshviews.sql.arithmetic import Interval
from freshviews.sql.build import call, integer, key, null, retyped
from freshviews.sql.expression import Binder
from freshviews.sql.parse import Node, SqlText
from freshviews.sql.scope import Scope
from freshviews.sql.select import Item, group_ref, has_aggregate
from freshviews.types import BIGINT, BOOLEAN, TINYINT, SqlType

MOST = 64
"""Grouping sets of a SELECT."""

Sets = tuple[tuple[int, ...], ...]
"""Of each grouping set the positions of its groups, in their order."""

_WORDS: dict[type[Node], str] = {exp.Rollup: "ROLLUP", exp.Cube: "CUBE", exp.GroupingSets: "GROUPING SETS"}


@dataclass(frozen=True)
class Written:
    """GROUP BY as it is written: expressions, in the order in which they first stand, maybe equal ones; and the sets of
    their positions, None where it writes none."""

    nodes: tuple[Node, ...]
    sets: Sets | None = None

    @property
    def is_global(self) -> bool:
        """Whether it says that all rows are one group, which is there without rows too."""
        return self.sets == ((),) and not self.nodes


def written(text: SqlText, group: exp.Group) -> Written:
    """The expressions and grouping sets of GROUP BY. Raises SqlError with the place."""
    behind = [one for name in ("rollup", "cube", "grouping_sets") for one in group.args.get(name) or ()]
    parts = [part for part in group.expressions if type(part) in _WORDS]
    if not behind and not parts:
        return Written(tuple(group.expressions))
    clause = (behind or parts)[0]
    if group.args.get("all"):
        raise text.error(clause, f"{_WORDS[type(clause)]} takes its groups by name; GROUP BY ALL has none")
    if behind:
        last = group.expressions[-1] if group.expressions else clause
        if parts or len(behind) > 1 or text.at(clause) < text.at(last):
            what = f"{_WORDS[type(clause)]} after the groups stands alone and last"
            raise text.error(clause, f"{what}; GROUP BY ROLLUP (a), CUBE (b) puts several together")
    nodes: list[Node] = []
    if behind and not isinstance(clause, exp.GroupingSets):
        parts = [type(clause)(expressions=group.expressions)]
        elements = [_sets_of(text, parts[0], clause, nodes)]
    elif behind:
        nodes += group.expressions
        elements = [_sets_of(text, clause, clause, nodes)]
    else:
        elements = [_sets_of(text, part, part, nodes) for part in group.expressions]
    number = prod(map(len, elements))
    if number > MOST:
        raise _too_many(text, clause, number)
    sets = [tuple(sorted({i for part in parts for i in part})) for parts in product(*elements)]
    return Written(tuple(nodes), tuple(sets))


def _sets_of(text: SqlText, part: Node, place: Node, nodes: list[Node]) -> list[tuple[int, ...]]:
    """The sets that a part of GROUP BY makes by itself, its expressions put to ``nodes``."""
    if isinstance(part, exp.GroupingSets):
        return [one for inner in part.expressions for one in _sets_of(text, inner, inner, nodes)]
    if isinstance(part, (exp.Rollup, exp.Cube)):
        word = _WORDS[type(part)]
        if not part.expressions:
            raise text.error(place, f"{word} needs columns or expressions")
        count = len(part.expressions)
        if isinstance(part, exp.Cube) and 2**count > MOST:
            raise _too_many(text, place, 2**count)
        units = [_unit(one, nodes) for one in part.expressions]
        if isinstance(part, exp.Rollup):
            chosen: Iterator[tuple[tuple[int, ...], ...]] = (tuple(units[:n]) for n in range(count, -1, -1))
        else:
            chosen = (some for n in range(count, -1, -1) for some in combinations(units, n))
        return [tuple(i for unit in some for i in unit) for some in chosen]
    return [_unit(part, nodes)]


def _unit(node: Node, nodes: list[Node]) -> tuple[int, ...]:
    """The positions of an expression, or of those in parentheses."""
    parts = node.expressions if isinstance(node, exp.Tuple) else [node]
    nodes += parts
    return tuple(range(len(nodes) - len(parts), len(nodes)))


def _too_many(text: SqlText, place: Node, number: int) -> SqlError:
    return text.error(
        place,
        f"this GROUP BY makes {number} grouping sets; {MOST} are accepted, as CUBE of {MOST.bit_length() - 1} columns "
        "makes; list those that are wanted: GROUPING SETS ((a, b), (a), ())",
    )


def groups_of(text: SqlText, by: Written, bound: Sequence[tuple[Item, Node]]) -> tuple[tuple[Item, ...], Sets]:
    """The groups, each once, of the expressions of GROUP BY, and the sets of them; () where it writes none."""
    chosen: dict[tuple[object, ...], Item] = {}
    for item, node in bound:
        if has_aggregate(item.expr):
            raise text.error(node, f"GROUP BY {text.of(node)} is an aggregate; group by columns and expressions")
        if not isinstance(item.expr, Literal):
            chosen.setdefault(key(item.expr), item)
        elif by.sets is not None:
            raise text.error(node, f"{text.of(node)} is a constant, which is no group of a grouping set; leave it out")
    places = {one: i for i, one in enumerate(chosen)}
    of = [places.get(key(item.expr), 0) for item, _ in bound]
    return tuple(chosen.values()), tuple(tuple(sorted({of[i] for i in one})) for one in by.sets or ())


@dataclass(frozen=True)
class GroupingSets:
    """The grouping sets of a SELECT. ``groups`` are over columns of the sources; ``places``: which of them an
    expression is that is bound over ``scope``, FROM's columns by themselves, and over ``aliases`` of the list."""

    text: SqlText
    groups: tuple[Item, ...]
    sets: Sets
    scope: Scope
    items: tuple[Item, ...]
    """The SELECT list, bound over ``scope``."""
    aliases: Mapping[str, Expr]
    places: Mapping[tuple[object, ...], int]

    def reference(self, expr: Expr) -> Expr | None:
        """What stands for an expression over ``scope`` that is a group."""
        place = self.places.get(key(expr))
        if place is None:
            return None
        group = self.groups[place].expr
        ref = group_ref(place, group)
        return replace(ref, nullable=group.nullable or any(place not in one for one in self.sets))

    def whole(self, resolve: Callable[[exp.Column], Expr] | None = None) -> Callable[[Node], Expr | None]:
        """Tells of a node what stands for it where it is a group as a whole. ``resolve``: what names mean there, over
        ``scope``."""
        binder = self._binder(resolve)

        def reference(node: Node) -> Expr | None:
            try:
                bound = binder.bind_any(node)
            except SqlError:
                return None  # not by itself a scalar expression: a part of it may be a group yet
            return None if isinstance(bound, Interval) else self.reference(bound)

        return reference

    def _binder(self, resolve: Callable[[exp.Column], Expr] | None = None) -> Binder:
        within = self.scope.with_aliases(self.aliases)
        return Binder(self.text, resolve or (lambda c: within.resolve(self.text, c)), "GROUP BY")

    def tells(self, node: Node) -> Expr:
        """GROUPING and GROUPING_ID: which of groups a row's set lacks, 1 each, as bits, the last group's the lowest."""
        name, arguments = node.name.upper(), list(node.expressions)
        if name == "GROUPING" and len(arguments) != 1:
            raise self.text.error(node, f"GROUPING takes 1 argument, not {len(arguments)}; GROUPING_ID takes several")
        places = [self._place(one, name) for one in arguments] or list(range(len(self.groups)))
        of = TINYINT if name == "GROUPING" else BIGINT
        return by_set([Literal(_bits(p not in one for p in places), of) for one in self.sets], of)

    def _place(self, node: Node, name: str) -> int:
        place = self.places.get(key(self._binder().bind(node)))
        if place is None:
            known = ", ".join(dict.fromkeys(group.name for group in self.groups))
            raise self.text.error(node, f"{name} takes groups of this GROUP BY ({known}); {self.text.of(node)} is none")
        return place


def _bits(flags: Iterable[bool]) -> int:
    value = 0
    for flag in flags:
        value = 2 * value + flag
    return value


def by_set(values: Sequence[Expr], of: SqlType) -> Expr:
    """The value that a row has by its grouping set."""
    distinct = {key(value): value for value in values}
    *first, last = distinct
    args: list[Expr] = []
    for one in first:
        args += [_within([i for i, value in enumerate(values) if key(value) == one], len(values)), distinct[one]]
    return call("case", (*args, distinct[last]), of) if args else retyped(distinct[last], of)


def _within(positions: Sequence[int], count: int) -> Expr:
    """Whether a row's set is one of these, of so many."""
    position = Column(SET, BIGINT, False)
    if positions == list(range(len(positions))):
        return call("lt", (position, integer(len(positions))), BOOLEAN)
    if positions == list(range(count - len(positions), count)):
        return call("ge", (position, integer(count - len(positions))), BOOLEAN)
    return logic.any_of([call("eq", (position, integer(i)), BOOLEAN) for i in positions])


def in_sets(group: int, value: Expr, sets: Sets) -> Expr:
    """A group's value in a row: NULL where the row's set lacks the group."""
    absent = null(value.type)
    return by_set([value if group in one else absent for one in sets], value.type)
