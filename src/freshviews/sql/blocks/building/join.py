"""Decides where each predicate of a join is evaluated. A source is one table, view or subquery in FROM.

- A predicate of one source filters that source.
- ``=`` and ``<=>`` between expressions of two sources join these sources. a = b and b = c also join a and c.
- Other predicates are conditions over several sources. But if r.a = s.a, then ``s.a < r.b`` is a filter of r.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from freshviews.expr.nodes import Call, Column, Expr, Literal
from freshviews.records import dataclass
from freshviews.sql.blocks.bound import OptionalSource
from freshviews.sql.blocks.optional import EQUALITIES, Keyed, keyed
from freshviews.sql.expressions.build import (
    TRUE,
    call,
    has_host,
    is_guarded,
    key,
    nodes_of,
    refined,
    rejects_null,
    replaced,
)
from freshviews.sql.expressions.nulls import is_null_at, where_null
from freshviews.sql.names.scope import Source, alias_of, aliases_in
from freshviews.types import BOOLEAN

_Key = tuple[object, ...]


@dataclass(frozen=True)
class Shared:
    """Expressions that are equal in every row of the join: one per source, by alias.

    ``others``: further expressions of these sources; filters make them equal to the first one.
    """

    members: Mapping[str, Expr]
    others: tuple[Expr, ...] = ()

    @property
    def terms(self) -> tuple[Expr, ...]:
        return (*self.members.values(), *self.others)


@dataclass(frozen=True)
class Join:
    """A join with its predicates placed: filters by alias, shared variables, conditions across sources.

    ``optional``: the keys of the sources of outer joins, by alias.
    """

    sources: tuple[Source, ...]
    filters: Mapping[str, tuple[Expr, ...]]
    shared: tuple[Shared, ...]
    conditions: tuple[Expr, ...]
    optional: Mapping[str, Keyed] = field(default_factory=dict)

    def in_atom(self, expr: Expr) -> bool:
        """True if one atom can compute the expression from its row; an optional atom, if its default row gives NULL."""
        aliases = aliases_in(expr)
        if not aliases & self.optional.keys():
            return len(aliases) <= 1
        return len(aliases) == 1 and is_null_at(expr, lambda name: True)

    def lifted_in_atom(self, factor: Expr) -> bool:
        """True if one atom can compute a factor of an aggregate; an optional atom, if its default row gives 0."""
        aliases = aliases_in(factor)
        if not aliases & self.optional.keys():
            return len(aliases) <= 1
        default = where_null(factor, lambda name: True)
        return len(aliases) == 1 and isinstance(default, Literal) and default.value == 0


def joined(sources: tuple[Source, ...], conjuncts: Iterable[Expr], optional: Sequence[OptionalSource] = ()) -> Join:
    """Place every conjunct of WHERE and ON.

    A filter on a joined column is repeated on every source that has the column. So a source stores only rows that may
    have a partner. In a LEFT JOIN, a filter on the left side is repeated on the right side, but never the reverse. A
    predicate of WHERE over the right side is a condition.
    """
    keys = keys_of(optional)
    filters: dict[str, list[Expr]] = {source.alias: [] for source in sources}
    for alias, found in keys.items():
        filters[alias] += found.filters
    equalities: list[Call] = []
    across: list[Expr] = []
    later: list[Expr] = []
    for conjunct in conjuncts:
        aliases = aliases_in(conjunct)
        if conjunct == TRUE:
            continue
        if aliases & keys.keys():
            later.append(conjunct)
        elif len(aliases) <= 1:
            # A constant condition becomes a filter of the first source.
            filters[next(iter(aliases), sources[0].alias)].append(conjunct)
        elif isinstance(conjunct, Call) and joins(conjunct):
            equalities.append(conjunct)
        else:
            across.append(conjunct)
    shared = _classes(equalities, filters, [source.alias for source in sources])
    conditions = []
    for conjunct in across:
        made = localised(conjunct, shared)
        aliases = aliases_in(made)
        if len(aliases) == 1:
            filters[next(iter(aliases))].append(made)
        else:
            conditions.append(conjunct)
    conditions += later
    _repeat_filters(filters, shared)
    for alias, found in keys.items():
        _repeat_inward(filters, alias, found, shared)
    for condition in conditions:
        # A leaf computes its expressions before the condition is tested, so it must filter the NULLs that the rest of
        # the query may assume away.
        rejected = rejects_null(condition)
        for node in nodes_of(condition):
            if isinstance(node, Column) and node.name in rejected and alias_of(node.name) not in keys:
                _exclude_null(filters[alias_of(node.name)], node)
    for one in _strict(equalities, shared):
        for alias, term in one.members.items():
            _exclude_null(filters[alias], term)
    placed = {alias: tuple(found) for alias, found in filters.items()}
    return Join(sources, placed, shared, tuple(conditions), keys)


def keys_of(optional: Sequence[OptionalSource]) -> dict[str, Keyed]:
    """The keys of optional sources by alias."""
    names = [one.alias for one in optional]
    keys: dict[str, Keyed] = {}
    for one in optional:
        found = keyed(one.on, one.alias, names)
        assert found is not None
        keys[one.alias] = found
    return keys


def _exclude_null(filters: list[Expr], term: Expr) -> None:
    """Add a filter that the term is not NULL, unless the source's filters imply it."""
    known = frozenset[str]().union(*map(rejects_null, filters))
    if refined(term, known).nullable:
        filters.append(call("is_not_null", (term,), BOOLEAN))


def joins(conjunct: Expr) -> bool:
    """True for an equality of two expressions that read one source each."""
    if not isinstance(conjunct, Call) or conjunct.op not in EQUALITIES:
        return False
    left, right = map(aliases_in, conjunct.args)
    return len(left) == 1 and len(right) == 1


def _classes(equalities: Sequence[Call], filters: dict[str, list[Expr]], order: list[str]) -> tuple[Shared, ...]:
    """Classes of equal terms (union-find). Two terms of one source become a filter of it."""
    parent: dict[_Key, _Key] = {}
    terms: dict[_Key, Expr] = {}

    def root(of: _Key) -> _Key:
        while parent[of] != of:
            of = parent[of]
        return of

    for equality in equalities:
        for term in equality.args:
            terms.setdefault(key(term), term)
            parent.setdefault(key(term), key(term))
        left, right = (root(key(term)) for term in equality.args)
        parent[right] = left
    strict = {root(key(e.args[0])) for e in equalities if e.op != "null_safe_eq"}
    classes: list[Shared] = []
    grouped: dict[_Key, list[Expr]] = {known: [] for known in parent if root(known) == known}
    for known, term in terms.items():
        grouped[root(known)].append(term)
    for start, found in grouped.items():
        members: dict[str, Expr] = {}
        others: list[Expr] = []
        for term in sorted(found, key=lambda t: order.index(next(iter(aliases_in(t))))):
            (alias,) = aliases_in(term)
            if alias in members:
                others.append(term)
                filters[alias].append(_equal(members[alias], term, start in strict))
            else:
                members[alias] = term
        classes.append(Shared(members, tuple(others)))
    return tuple(classes)


def _equal(a: Expr, b: Expr, strict: bool) -> Expr:
    if not strict:
        return call("null_safe_eq", (a, b), BOOLEAN)
    return call("eq_float" if a.type.is_float else "eq", (a, b), BOOLEAN)


def _strict(equalities: Sequence[Call], shared: tuple[Shared, ...]) -> list[Shared]:
    """The classes with a ``=``: no member is NULL. Classes of ``<=>`` alone join NULL to NULL."""
    plain = {key(arg) for e in equalities if e.op != "null_safe_eq" for arg in e.args}
    return [one for one in shared if any(key(term) in plain for term in one.terms)]


def localised(expr: Expr, shared: tuple[Shared, ...]) -> Expr:
    """The expression over one source if equalities allow it; else unchanged."""
    aliases = aliases_in(expr)
    if len(aliases) <= 1:
        return expr
    for target in sorted(aliases):
        made = _moved(expr, target, shared)
        if made is not None:
            return made
    return expr


def _moved(expr: Expr, target: str, shared: tuple[Shared, ...]) -> Expr | None:
    """Replace each column by its equal in ``target``; None if a column has none."""
    equal: dict[str, Expr] = {}
    for node in nodes_of(expr):
        if isinstance(node, Column) and alias_of(node.name) != target:
            one = next((s for s in shared if target in s.members and key(node) in map(key, s.terms)), None)
            if one is None:
                return None
            equal[node.name] = one.members[target]
    return replaced(expr, lambda part: equal.get(part.name) if isinstance(part, Column) else None)


def _repeat_filters(filters: dict[str, list[Expr]], shared: tuple[Shared, ...]) -> None:
    original = {alias: tuple(filter(_is_repeated, found)) for alias, found in filters.items()}
    for alias, found in original.items():
        for one in found:
            for target in filters:
                made = _moved(one, target, shared) if target != alias else None
                if made is not None and key(made) not in map(key, filters[target]):
                    filters[target].append(made)


def _repeat_inward(filters: dict[str, list[Expr]], alias: str, keys: Keyed, shared: tuple[Shared, ...]) -> None:
    """Repeat filters of the preceding rows on the key of an optional source."""
    known = []
    for own, other in keys.pairs:
        equal = next((one.terms for one in shared if key(other) in map(key, one.terms)), (other,))
        known.append(Shared({alias: own}, equal))
    for one in [term for source, found in filters.items() if source != alias for term in filter(_is_repeated, found)]:
        made = _moved(one, alias, tuple(known))
        if made is not None and key(made) not in map(key, filters[alias]):
            filters[alias].append(made)


def _is_repeated(one: Expr) -> bool:
    return not (
        isinstance(one, Literal) or _is_presence(one) or has_host(one) or is_guarded(one) or not aliases_in(one)
    )


def _is_presence(condition: Expr) -> bool:
    """True for ``x IS NOT NULL``, which a join by = implies for both sides."""
    return isinstance(condition, Call) and condition.op == "is_not_null"
