"""Represents the joins of a FROM clause as a tree. Turns outer joins into inner ones where the result stays the same.

A node has sources that are inner-joined, and further nodes as the sides of LEFT and FULL joins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace

from freshviews.expr.nodes import Call, Expr, columns_of
from freshviews.records import dataclass
from freshviews.sql.blocks.bound import Absent, OptionalSource
from freshviews.sql.expressions.nulls import is_null_at, rejects, with_nullability
from freshviews.sql.names.scope import Scope, Source, alias_of


@dataclass(frozen=True)
class Joined:
    """A join under construction.

    ``sources`` and ``conjuncts``: its inner joins. ``absent``: the sources of NOT EXISTS and ANTI JOIN. ``left``: its
    LEFT JOINs, in order. ``full``: FULL JOINs, each of which is a source of this join. After ``lowered`` these two are
    empty, and ``optional`` has the sources of outer joins.
    """

    sources: tuple[Source, ...] = ()
    conjuncts: tuple[Expr, ...] = ()
    scope: Scope = field(default_factory=Scope)
    absent: tuple[Absent, ...] = ()
    left: tuple[LeftJoin, ...] = ()
    full: tuple[FullJoin, ...] = ()
    optional: tuple[OptionalSource, ...] = ()

    @property
    def aliases(self) -> frozenset[str]:
        """The aliases of all sources, those of outer joins included."""
        return frozenset(aliases_in_order(self))

    @property
    def required(self) -> frozenset[str]:
        """The aliases of sources that have a row in every row of the join."""
        return frozenset(s.alias for s in self.sources) - {one.alias for one in self.optional}

    def mapped(self, to: Callable[[Expr], Expr]) -> Joined:
        """The join with ``to`` applied to each of its expressions, also inside outer joins."""
        return replace(
            self,
            conjuncts=tuple(map(to, self.conjuncts)),
            scope=self.scope.mapped(to),
            absent=tuple(
                replace(one, filters=tuple(map(to, one.filters)), pairs=tuple((to(a), to(b)) for a, b in one.pairs))
                for one in self.absent
            ),
            left=tuple(LeftJoin(one.right.mapped(to), tuple(map(to, one.on))) for one in self.left),
            full=tuple(
                replace(
                    one,
                    left=one.left.mapped(to),
                    right=one.right.mapped(to),
                    on=tuple(map(to, one.on)),
                    merged=either_of(map(to, one.merged)),
                )
                for one in self.full
            ),
        )

    def beside(self, other: Joined, scope: Scope, on: Iterable[Expr] = ()) -> Joined:
        """The inner join of both."""
        return Joined(
            (*self.sources, *other.sources),
            (*self.conjuncts, *other.conjuncts, *on),
            scope,
            (*self.absent, *other.absent),
            (*self.left, *other.left),
            (*self.full, *other.full),
        )


@dataclass(frozen=True)
class LeftJoin:
    """The right side of a LEFT JOIN, with the rest of a ``Joined``."""

    right: Joined
    on: tuple[Expr, ...]


@dataclass(frozen=True)
class FullJoin:
    """A FULL JOIN, which is one source of the ``Joined`` around it.

    ``merged``: the columns of USING, each as COALESCE of a value of the left and one of the right side.
    """

    left: Joined
    right: Joined
    on: tuple[Expr, ...]
    merged: tuple[Call, ...] = ()


def either_of(exprs: Iterable[Expr]) -> tuple[Call, ...]:
    """The expressions among ``exprs`` that are COALESCE of two values."""
    return tuple(one for one in exprs if isinstance(one, Call) and one.op == "coalesce" and len(one.args) == 2)


def full_joins(joined: Joined) -> Iterator[FullJoin]:
    """The FULL JOINs of a join, those inside its outer joins included."""
    left = [joined]
    while left:
        one = left.pop()
        yield from one.full
        left += [*(side for full in one.full for side in (full.left, full.right)), *(o.right for o in one.left)]


def loosened(scope: Scope) -> Scope:
    """The scope of a side of an outer join that may have no partner: its columns may be NULL."""
    return scope.mapped(lambda expr: with_nullability(expr, dict.fromkeys(columns_of(expr), True)))


def simplified(joined: Joined, also: tuple[Expr, ...] = ()) -> Joined:
    """Turn outer joins into inner ones, and FULL into LEFT, if a predicate is not TRUE for a row without a partner.

    ``also``: further predicates that the rows must pass.
    """
    order = list(aliases_in_order(joined))
    found = _one_simplified(joined, (*joined.conjuncts, *also))
    while found is not None:
        joined = found
        found = _one_simplified(joined, (*joined.conjuncts, *also))
    return replace(
        joined,
        sources=tuple(sorted(joined.sources, key=lambda source: order.index(source.alias))),
        left=tuple(replace(one, right=simplified(one.right, one.on)) for one in joined.left),
        full=tuple(replace(f, left=simplified(f.left), right=simplified(f.right)) for f in joined.full),
    )


def aliases_in_order(joined: Joined) -> Iterator[str]:
    """The aliases of all sources, in order."""
    left = [joined]
    while left:
        one = left.pop()
        yield from (source.alias for source in one.sources)
        sides = (*(side for full in one.full for side in (full.left, full.right)), *(o.right for o in one.left))
        left.extend(reversed(sides))


def all_aliases(joined: Joined) -> list[str]:
    """The aliases of all sources, and of the sources of NOT EXISTS and ANTI JOIN."""
    found = [*(source.alias for source in joined.sources), *(one.source.alias for one in joined.absent)]
    for side in (*(side for one in joined.full for side in (one.left, one.right)), *(o.right for o in joined.left)):
        found += all_aliases(side)
    return found


def _one_simplified(joined: Joined, conjuncts: tuple[Expr, ...]) -> Joined | None:
    def rejected(part: Joined) -> bool:
        aliases = part.aliases
        return any(rejects(one, lambda name: alias_of(name) in aliases) for one in conjuncts)

    for i, one in enumerate(joined.left):
        if rejected(one.right):
            before, after = replace(joined, left=joined.left[:i]), joined.left[i + 1 :]
            made = before.beside(one.right, joined.scope, one.on)
            return replace(made, left=(*made.left, *after))
    for i, full in enumerate(joined.full):
        right, left = rejected(full.right), rejected(full.left)
        if right or left:
            rest = replace(joined, full=(*joined.full[:i], *joined.full[i + 1 :]), left=())
            if right and left:
                made = full.left.beside(full.right, joined.scope, full.on)
            else:
                row, partner = (full.right, full.left) if right else (full.left, full.right)
                made = replace(row, left=(*row.left, LeftJoin(partner, full.on)))
            made = rest.beside(made, joined.scope)
            return replace(made, left=(*made.left, *joined.left))
    return None


def is_plain(scope: Scope) -> bool:
    """True if every column is NULL in a row without a partner, so that the join can be a side of an outer join."""
    return all(is_null_at(entry.expr, lambda name: True) for entry in (*scope.entries, *scope.visible))


def free_alias(wanted: str, taken: list[str]) -> str:
    """An unused alias, which is added to ``taken``."""
    stem, name, number = re.sub(r"_\d+$", "", wanted), wanted, 2
    known = {one.lower() for one in taken}
    while name.lower() in known:
        name, number = f"{stem}_{number}", number + 1
    taken.append(name)
    return name
