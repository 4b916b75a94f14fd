"""Binds ROLLUP, CUBE and GROUPING SETS.

The result has rows for each grouping set. The rows of a set have NULL in each column that the set does not group by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product
from math import prod

from sqlglot import exp

from freshviews.errors import SqlError
from freshviews.expr.nodes import Column, Expr, Literal
from freshviews.query.block import SET
from freshviews.records import dataclass
from freshviews.sql.blocks.bound import Item, group_ref, has_aggregate, has_subquery_ref
from freshviews.sql.blocks.forms import NONE, Form, Forms
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import call, integer, key, null, retyped
from freshviews.sql.text.parse import Node, SqlText
from freshviews.types import BIGINT, BOOLEAN, TINYINT, SqlType

MOST = 64
"""Most grouping sets of one SELECT."""

Sets = tuple[tuple[int, ...], ...]
"""Per grouping set, the positions of its groups, ascending."""

_WORDS: dict[type[Node], str] = {exp.Rollup: "ROLLUP", exp.Cube: "CUBE", exp.GroupingSets: "GROUPING SETS"}


@dataclass(frozen=True)
class Written:
    """GROUP BY as written.

    ``nodes``: its expressions in order of first appearance; some may be equal. ``sets``: per grouping set the positions
    of its expressions; None if GROUP BY has no grouping sets.
    """

    nodes: tuple[Node, ...]
    sets: Sets | None = None

    @property
    def is_global(self) -> bool:
        """True if all rows form one group, which exists even without rows."""
        return self.sets == ((),) and not self.nodes


def written(text: SqlText, group: exp.Group) -> Written:
    """Return the expressions and grouping sets of GROUP BY. Raises SqlError with the place."""
    behind = [one for name in ("rollup", "cube", "grouping_sets") for one in group.args.get(name) or ()]
    parts = [part for part in group.expressions if type(part) in _WORDS]
    if not group.expressions and not behind:
        raise text.error(group, "GROUP BY needs columns or expressions")
    if not behind and not parts:
        return Written(tuple(group.expressions))
    clause = (behind or parts)[0]
    if behind and parts:
        what = f"{_WORDS[type(clause)]} after the groups must be the only one, and last"
        raise text.error(clause, f"{what}; to combine several, write GROUP BY ROLLUP (a), CUBE (b)")
    nodes: list[Node] = []
    if behind:
        if isinstance(clause, exp.GroupingSets):
            nodes += group.expressions
            elements = [_sets_of(text, clause, nodes)]
        else:
            elements = [_levels(text, clause, group.expressions, nodes)]
    else:
        # Parentheses denote a set only inside GROUPING SETS.
        elements = [
            _sets_of(text, part, nodes) if type(part) in _WORDS else [_placed([part], nodes)]
            for part in group.expressions
        ]
    number = prod(map(len, elements))
    if number > MOST:
        raise _too_many(text, clause, number)
    sets = [tuple(sorted({i for part in parts for i in part})) for parts in product(*elements)]
    return Written(tuple(nodes), tuple(sets))


def _sets_of(text: SqlText, part: Node, nodes: list[Node]) -> list[tuple[int, ...]]:
    """The sets of one part of GROUP BY or of GROUPING SETS. Its expressions are appended to ``nodes``."""
    if isinstance(part, exp.GroupingSets):
        return [one for inner in part.expressions for one in _sets_of(text, inner, nodes)]
    if isinstance(part, (exp.Rollup, exp.Cube)):
        return _levels(text, part, part.expressions, nodes)
    return [_unit(part, nodes)]


def _levels(text: SqlText, clause: Node, written: Sequence[Node], nodes: list[Node]) -> list[tuple[int, ...]]:
    """The sets of ROLLUP or CUBE, the largest first."""
    count, is_cube = len(written), isinstance(clause, exp.Cube)
    if not written:
        raise text.error(clause, f"{_WORDS[type(clause)]} needs columns or expressions")
    if is_cube and 2**count > MOST:
        raise _too_many(text, clause, 2**count)
    units = [_unit(one, nodes) for one in written]
    sizes = range(count, -1, -1)
    chosen = [some for n in sizes for some in combinations(units, n)] if is_cube else [units[:n] for n in sizes]
    return [tuple(i for unit in some for i in unit) for some in chosen]


def _unit(node: Node, nodes: list[Node]) -> tuple[int, ...]:
    """The positions of an expression, or of the expressions in parentheses."""
    # The parentheses of a subquery are its own.
    whole = node if isinstance(node, exp.Subquery) else node.unnest()
    return _placed(node.expressions if isinstance(node, exp.Tuple) else [whole], nodes)


def _placed(written: Sequence[Node], nodes: list[Node]) -> tuple[int, ...]:
    nodes += written
    return tuple(range(len(nodes) - len(written), len(nodes)))


def _too_many(text: SqlText, place: Node, number: int) -> SqlError:
    return text.error(
        place,
        f"this GROUP BY makes {number} grouping sets; {MOST} are accepted, as CUBE of {MOST.bit_length() - 1} columns "
        "makes; list those that are wanted: GROUPING SETS ((a, b), (a), ())",
    )


@dataclass(frozen=True)
class GroupingSets:
    """The grouping sets of a SELECT.

    ``groups``: expressions over columns of the sources. ``places``: the position of the group of each form.
    """

    text: SqlText
    forms: Forms
    groups: tuple[Item, ...]
    sets: Sets
    places: Mapping[Form, int]

    def reference(self, form: Form | None) -> Expr | None:
        """The reference that replaces a group expression."""
        place = None if form is None else self.places.get(form)
        if place is None:
            return None
        group = self.groups[place].expr
        ref = group_ref(place, group)
        return replace(ref, nullable=group.nullable or any(place not in one for one in self.sets))

    def of(self, node: Node, shown: Mapping[str, int] = NONE) -> Expr | None:
        """The reference for a node that is a whole group, else None; ``shown`` as in ``Forms.of``."""
        return self.reference(self.forms.of(node, shown))

    def grouping(self, node: Node) -> Expr:
        """GROUPING and GROUPING_ID: one bit per argument, 1 if the row's set lacks the group; the last group is the
        lowest bit."""
        name, arguments = node.name.upper(), list(node.expressions)
        if name == "GROUPING" and len(arguments) != 1:
            raise self.text.error(node, f"GROUPING takes 1 argument, not {len(arguments)}; GROUPING_ID takes several")
        places = [self._place(one, name) for one in arguments] or list(range(len(self.groups)))
        of = TINYINT if name == "GROUPING" else BIGINT
        return by_set([Literal(_bits(p not in one for p in places), of) for one in self.sets], of)

    def _place(self, node: Node, name: str) -> int:
        form = self.forms.of(node)
        place = None if form is None else self.places.get(form)
        if place is None:
            known = ", ".join(dict.fromkeys(group.name for group in self.groups)) or "there are none"
            raise self.text.error(node, f"{name} takes groups of this GROUP BY ({known}), not {self.text.of(node)}")
        return place


def grouping_sets(
    text: SqlText, by: Written, forms: Forms, bound: Sequence[tuple[Item, Node, Form | None]]
) -> GroupingSets:
    """Return the grouping sets of GROUP BY, each group once.

    As in Spark, a group is identified by its expression over the columns of FROM. In ``FROM (SELECT a AS x, a AS y
    ...)`` the columns are x and y, so these are two groups. ``COALESCE(a, 0)`` is not the group a, even if a is NOT
    NULL.

    A SELECT list is bound twice. The first binding finds the expressions that GROUP BY names by alias or number. The
    second binding puts a reference in place of each group. The reference is nullable if some set lacks the group.
    """
    chosen: dict[Form, Item] = {}
    found: list[Form] = []
    for item, node, form in bound:
        check_group(text, item, node)
        if form is None:
            what = f"{text.of(node)}, of an enclosing query, as a group of ROLLUP, CUBE or GROUPING SETS"
            raise text.unsupported(node, what, "group by columns of FROM")
        chosen.setdefault(form, item)
        found.append(form)
    places = {form: i for i, form in enumerate(chosen)}
    sets = tuple(tuple(sorted({places[found[i]] for i in one})) for one in by.sets or ())
    return GroupingSets(text, forms, tuple(chosen.values()), sets, places)


def check_group(text: SqlText, item: Item, node: Node) -> None:
    """Raise SqlError if a group contains an aggregate, or a window function over groups."""
    if has_aggregate(item.expr):
        raise text.error(node, f"GROUP BY {text.of(node)} is an aggregate; group by columns and expressions")
    if has_subquery_ref(item.expr):
        what = f"GROUP BY {text.of(node)} has a window function, which is computed over the groups"
        raise text.error(
            node, f"{what}; compute the window function in a subquery of FROM, and group by the column of the subquery"
        )


def _bits(flags: Iterable[bool]) -> int:
    value = 0
    for flag in flags:
        value = 2 * value + flag
    return value


def by_set(values: Sequence[Expr], of: SqlType) -> Expr:
    """An expression over the number of the row's set, with a value per grouping set."""
    distinct = {key(value): value for value in values}
    *first, last = distinct
    args: list[Expr] = []
    for one in first:
        args += [_within([i for i, value in enumerate(values) if key(value) == one], len(values)), distinct[one]]
    return call("case", (*args, distinct[last]), of) if args else retyped(distinct[last], of)


def _within(positions: Sequence[int], count: int) -> Expr:
    """TRUE if the row's set is one of ``positions``; ``count``: the number of sets."""
    position = Column(SET, BIGINT, False)
    if positions == list(range(len(positions))):
        return call("lt", (position, integer(len(positions))), BOOLEAN)
    if positions == list(range(count - len(positions), count)):
        return call("ge", (position, integer(count - len(positions))), BOOLEAN)
    return logic.any_of([call("eq", (position, integer(i)), BOOLEAN) for i in positions])


def in_sets(group: int, value: Expr, sets: Sets) -> Expr:
    """The value of a group in a row: NULL if the row's set lacks the group."""
    absent = null(value.type)
    return by_set([value if group in one else absent for one in sets], value.type)
