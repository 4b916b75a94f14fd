"""Rewrites the right side of every outer join as a source that is looked up by a key.

Some joins need an internal view first::

    l LEFT JOIN (r JOIN s ON ..) ON ..   the right side is an internal view
    l LEFT JOIN r ON l.x < r.y           r is a view of pairs: (SELECT DISTINCT x FROM l) AS k JOIN r ON k.x < r.y,
                                         looked up by x
    l FULL JOIN r ON ..                  a view of l LEFT JOIN r, and of the rows of r without a partner
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from freshviews.expr.nodes import Call, Column, Expr, Literal, columns_of
from freshviews.sql.blocks.bound import Absent, Bound, Item, OptionalSource, Select, distinct_over
from freshviews.sql.blocks.joins.tree import FullJoin, Joined, free_alias, full_joins, simplified
from freshviews.sql.blocks.optional import keyed
from freshviews.sql.blocks.set_operation import uniquely_named
from freshviews.sql.blocks.views import Views
from freshviews.sql.expressions import logic
from freshviews.sql.expressions.build import call, key, null, refined, rejects_null, replaced
from freshviews.sql.expressions.nulls import rejects, with_nullability
from freshviews.sql.names.scope import Entry, Scope, Source, alias_of, aliases_in, name_of
from freshviews.types import BOOLEAN, INT

Read = Collection[tuple[str, str]] | None
"""The columns that a SELECT mentions, as (alias, name) in lower case, with an empty alias if unqualified; None for all.
Internal views have only these."""


def is_read(entry: Entry, read: Read) -> bool:
    """True if ``read`` has the column."""
    name = entry.name.lower()
    return read is None or ("", name) in read or (entry.alias.lower(), name) in read


def lowered(joined: Joined, views: Views, read: Read) -> Joined:
    """The join with every outer join as an optional source. ``read``: the columns that the SELECT mentions."""
    if not joined.left and not joined.full:
        return joined
    work = Lowering(views, sorted(joined.aliases | {one.source.alias for one in joined.absent}), read)
    found = simplified(joined)
    merged = [key(one) for full in full_joins(found) for one in full.merged]
    work.merged = {one: f"{_MERGED}{i}" for i, one in enumerate(merged)}
    work.read(joined)
    return work.finished(work.flat(found), joined.scope)


def columns_kept(joined: Joined, read: Read, views: Views) -> frozenset[str]:
    """The keys of the columns that the join or the SELECT reads."""
    work = Lowering(views, [], read)
    work.read(joined)
    return frozenset(work.kept)


def distinct_values(joined: Joined, columns: tuple[Expr, ...], views: Views) -> Select:
    """The distinct values of some columns of a join whose outer joins name no column of an enclosing query."""
    work = Lowering(views, sorted(joined.aliases | {one.source.alias for one in joined.absent}), None)
    work.read(joined)
    work.kept.update(name for column in columns for name in columns_of(column))
    flat = work.flat(simplified(joined)) if joined.left or joined.full else joined
    found = [one for one in map(work.now, columns) if isinstance(one, Column)]
    return distinct_over(work.bag_with(flat, {one.name: one for one in found}))


def semi_join(row: Joined, right: Joined, on: tuple[Expr, ...], views: Views, taken: list[str]) -> Joined:
    """The rows that have a partner, as an inner join with the distinct keys of the partners."""
    partner = _partner(row, right, on, views, taken, True)
    equal = []
    for own, other in partner.pairs:
        op = "null_safe_eq" if own.nullable else "eq_float" if own.type.is_float else "eq"
        equal.append(call(op, (other, own), BOOLEAN))
    return replace(row, sources=(*row.sources, partner.source), conjuncts=(*row.conjuncts, *equal))


def anti_join(row: Joined, right: Joined, on: tuple[Expr, ...], views: Views, taken: list[str]) -> Joined:
    """The rows that have no partner."""
    partner = _partner(row, right, on, views, taken, False)
    return replace(row, absent=(*row.absent, partner))


def _partner(
    row: Joined, right: Joined, on: tuple[Expr, ...], views: Views, taken: list[str], distinct: bool
) -> Absent:
    work = Lowering(views, taken, ())
    work.read(replace(right, conjuncts=(*right.conjuncts, *on)))
    work.read(row)
    side = work.single(work.flat(simplified(right, on)))
    terms = tuple(map(work.now, (*on, *side.conjuncts)))
    (source,) = side.sources
    return work.partner(row, source, terms, distinct)


ONE = Item("one", Literal(1, INT))
"""The list of a view whose columns are not read."""
_KEY = "keys"
_MERGED = "@merged"
"""A column of USING of a FULL JOIN is kept under such a name, with its number. No column has it."""


def _select(flat: Joined, items: tuple[Item, ...]) -> Select:
    return Select("bag", flat.sources, flat.conjuncts, items, absent=flat.absent, optional=flat.optional)


def _is_named(entry: Entry, read: Collection[tuple[str, str]]) -> bool:
    """True if ``read`` has the column by the name of its table."""
    return (entry.alias.lower(), entry.name.lower()) in read


@dataclass
class Lowering:
    """Makes the internal views of outer joins.

    ``taken``: aliases in use. ``columns``: the columns that the SELECT mentions. ``kept``: keys of the columns that are
    read outside the current join. ``moved``: the view's column for each column of a source that became part of a view.
    ``merged``: the names under which columns of USING of FULL JOINs are kept and moved, by their keys; the columns of
    which they are made are not kept for them.
    """

    views: Views
    taken: list[str]
    columns: Read
    kept: set[str] = field(default_factory=set)
    moved: dict[str, Column] = field(default_factory=dict)
    merged: dict[Hashable, str] = field(default_factory=dict)

    def read(self, joined: Joined) -> None:
        """Keep the columns that the join reads, and the columns of its scope that the SELECT reads."""
        scope = joined.scope
        exprs = [one.expr for one in scope.entries if self.columns is None or _is_named(one, self.columns)]
        exprs += [one.expr for one in scope.visible if is_read(one, self.columns)]
        self.kept.update(self._names((*exprs, *_exprs(joined))))

    def _names(self, exprs: Iterable[Expr]) -> Iterator[str]:
        """The names under which the columns of expressions are kept."""
        left = list(exprs)
        while left:
            node = left.pop()
            if isinstance(node, Column):
                yield node.name
            elif isinstance(node, Call):
                name = self._merged(node)
                if name is None:
                    left += node.args
                else:
                    yield name

    def _merged(self, part: Call) -> str | None:
        return self.merged.get(key(part)) if self.merged and part.op == "coalesce" else None

    def now(self, expr: Expr) -> Expr:
        """The expression over the current sources."""
        if self.merged or any(name in self.moved for name in columns_of(expr)):
            return replaced(expr, self._moved)
        return expr

    def _moved(self, part: Expr) -> Expr | None:
        name = part.name if isinstance(part, Column) else self._merged(part) if isinstance(part, Call) else None
        if name is None or name not in self.moved:
            return None
        return replace(self._last(name), nullable=part.nullable)

    def _last(self, name: str) -> Column:
        """The last column that a moved one became. It is remembered, so that a chain of views is followed once."""
        found = self.moved[name]
        if found.name in self.moved:
            found = self.moved[name] = self._last(found.name)
        return found

    def finished(self, flat: Joined, scope: Scope) -> Joined:
        """The join over its final sources, with the nullability of its columns."""
        flat = self._current(flat)
        declared = {s.column(c).name: c.nullable for s in flat.sources for c in s.columns}
        optional = {one.alias for one in flat.optional}
        nullable = {name: null or alias_of(name) in optional for name, null in declared.items()}

        def settled(expr: Expr) -> Expr:
            return with_nullability(expr, nullable)

        def on(one: OptionalSource) -> OptionalSource:
            own = {name: null for name, null in declared.items() if alias_of(name) == one.alias}
            return replace(one, on=tuple(with_nullability(term, nullable | own) for term in one.on))

        return replace(
            flat,
            conjuncts=tuple(map(settled, flat.conjuncts)),
            scope=scope.mapped(lambda expr: settled(self.now(expr))),
            optional=tuple(map(on, flat.optional)),
        )

    def _current(self, flat: Joined) -> Joined:
        return replace(
            flat,
            conjuncts=tuple(map(self.now, flat.conjuncts)),
            absent=tuple(_mapped_absent(one, self.now) for one in flat.absent),
            optional=tuple(replace(one, on=tuple(map(self.now, one.on))) for one in flat.optional),
        )

    def flat(self, joined: Joined) -> Joined:
        """The join without its own outer joins, which become sources."""
        outside = self.kept
        self.kept = outside.union(self._names(_exprs(joined)))
        sources = (*joined.sources, *map(self._full, joined.full))
        flat = Joined(sources, joined.conjuncts, absent=joined.absent)
        for one in joined.left:
            flat = self._left(flat, self.flat(one.right), one.on)
        self.kept = outside | {self._place(name) for name in outside}
        return self._current(flat)

    def _place(self, name: str) -> str:
        """The current key of a column."""
        return self._last(name).name if name in self.moved else name

    def single(self, flat: Joined) -> Joined:
        """The join as one source and predicates over it: itself, or an internal view."""
        return flat if len(flat.sources) == 1 and not flat.absent else self._view(flat)

    def source(self, bound: Bound, wish: str) -> Source:
        """An internal view as a source."""
        made = self.views.source_of(self.views.internal_view(uniquely_named(bound)))
        return replace(made, alias=free_alias(wish, self.taken))

    def _view(self, flat: Joined) -> Joined:
        """The join as an internal view with the columns that are read. Predicates that name other sources, of later
        joins or of an enclosing query, stay outside."""
        flat = self._current(flat)
        own = tuple(one for one in flat.conjuncts if aliases_in(one) <= flat.aliases)
        absent = tuple(a for a in flat.absent if all(aliases_in(other) <= flat.aliases for _, other in a.pairs))
        # The predicates outside do not exclude NULLs from the view.
        inside = replace(flat, conjuncts=own, absent=absent)
        items = [item for source in flat.sources for item in self._items(source, inside)]
        select = _select(inside, tuple(items) or (ONE,))
        source = self.source(Bound((select,)), "_".join(s.alias for s in flat.sources[:2]))
        self._move(items, source, 0)
        return Joined(
            (source,),
            tuple(self.now(one) for one in flat.conjuncts if one not in own),
            absent=tuple(_mapped_absent(one, self.now) for one in flat.absent if one not in absent),
        )

    def _items(self, source: Source, flat: Joined) -> list[Item]:
        optional = source.alias not in flat.required
        never_null = frozenset[str]().union(*map(rejects_null, flat.conjuncts))
        columns = [(c, source.column(c)) for c in source.columns]
        return [
            Item(c.name, replace(column, nullable=(c.nullable or optional) and column.name not in never_null))
            for c, column in columns
            if column.name in self.kept
        ]

    def _move(self, items: list[Item], source: Source, first: int) -> None:
        for item, column in zip(items, source.columns[first:], strict=False):
            assert isinstance(item.expr, Column)
            made = self.moved[item.expr.name] = source.column(column)
            self.kept.add(made.name)

    def _left(self, flat: Joined, right: Joined, on: tuple[Expr, ...]) -> Joined:
        """The LEFT JOIN of two joins that have no outer joins of their own."""
        on = tuple(map(self.now, on))
        if right.optional and self._is_chain(flat, right, on):
            first, *more = right.sources
            optional = (OptionalSource(first.alias, (*on, *right.conjuncts)), *right.optional)
            return replace(flat, sources=(*flat.sources, first, *more), optional=(*flat.optional, *optional))
        (source,) = (side := self.single(right)).sources
        terms = tuple(map(self.now, (*on, *side.conjuncts)))
        if keyed(terms, source.alias, flat.aliases - flat.required) is None:
            flat, source, terms = self._matched(flat, source, terms)
        optional = (*flat.optional, OptionalSource(source.alias, terms))
        return replace(flat, sources=(*flat.sources, source), optional=optional)

    def _is_chain(self, flat: Joined, right: Joined, on: tuple[Expr, ...]) -> bool:
        """True if l LEFT JOIN (r LEFT JOIN s) equals (l LEFT JOIN r) LEFT JOIN s: s finds no partner for NULLs of r."""
        first = right.sources[0].alias
        if right.absent or len(right.required) > 1 or any(aliases_in(one) & (right.aliases - {first}) for one in on):
            return False
        optional = (flat.aliases - flat.required) | right.aliases
        if keyed((*on, *right.conjuncts), first, optional - {first}) is None:
            return False
        for one in right.optional:
            others = right.aliases - {one.alias}
            if not any(_rejected(term, others) for term in one.on) or keyed(one.on, one.alias, optional) is None:
                return False
        return True

    def _matched(
        self, flat: Joined, source: Source, terms: tuple[Expr, ...]
    ) -> tuple[Joined, Source, tuple[Expr, ...]]:
        """A LEFT JOIN without a key: the right side becomes a view of its rows beside the values that ON compares them
        with."""
        columns = _columns_around(terms, source.alias)
        proven = frozenset[str]().union(*map(rejects_null, terms))
        if any(alias_of(name) not in flat.required and name not in proven for name in columns):
            # NULL of an outer join's column may find a partner: only a stored join knows which rows have it.
            flat = self._view(flat)
            terms = tuple(map(self.now, terms))
            if keyed(terms, source.alias) is not None:
                return flat, source, terms
            columns = _columns_around(terms, source.alias)
            proven = frozenset[str]().union(*map(rejects_null, terms))
        keys = self.source(Bound((distinct_over(self.bag_with(flat, columns, proven)),)), _KEY)
        to = {name: keys.column(c) for name, c in zip(columns, keys.columns, strict=True)}
        inner = tuple(
            replaced(term, lambda part: to.get(part.name) if isinstance(part, Column) else None) for term in terms
        )
        own = self._items(source, Joined((source,)))
        values = [Item(c.name, to[name]) for name, c in zip(columns, keys.columns, strict=True)]
        made = self.source(Bound((Select("bag", (keys, source), inner, (*values, *own)),)), source.alias)
        self._move(own, made, len(values))
        equal = []
        for (name, column), c in zip(columns.items(), made.columns, strict=False):
            op = "null_safe_eq" if name not in proven else "eq_float" if column.type.is_float else "eq"
            equal.append(call(op, (column, made.column(c)), BOOLEAN))
        return flat, made, tuple(equal)

    def bag_with(self, flat: Joined, columns: dict[str, Column], never_null: frozenset[str] = frozenset()) -> Select:
        """The columns as a bag: of the one source that has them, or of the join. ``never_null``: columns whose NULLs
        are not needed."""
        aliases = {alias_of(name) for name in columns}
        declared = {s.column(c).name: s.column(c) for s in flat.sources for c in s.columns}
        exprs = [replace(declared[name], nullable=column.nullable) for name, column in columns.items()]
        items = tuple(Item(f"k{i}", expr) for i, expr in enumerate(exprs, 1))
        # The NULLs of an optional source are in the join, not in the source.
        alone = len(aliases) == 1 and (aliases <= flat.required or never_null.issuperset(columns))
        within = aliases if alone else flat.aliases
        conjuncts = tuple(one for one in flat.conjuncts if aliases_in(one) <= within)
        if not alone:
            return replace(_select(flat, items), conjuncts=conjuncts, absent=())
        return Select("bag", tuple(s for s in flat.sources if s.alias in aliases), conjuncts, items)

    def _full(self, full: FullJoin) -> Source:
        """An internal view of a FULL JOIN: the rows of the left side with partners or NULLs, and the rows of the right
        side without a partner."""
        merged = [one for one in full.merged if self._merged(one) in self.kept]
        outside = self.kept
        self.kept = outside.union(self._names(arg for one in merged for arg in one.args))
        left, right = (self.single(self.flat(side)) for side in (full.left, full.right))
        self.kept = outside | {self._place(name) for name in outside}
        on = tuple(map(self.now, full.on))
        (first,), (second,) = left.sources, right.sources
        own, other = self._items(first, left), self._items(second, right)
        # A value of the side without a row is NULL.
        firsts, seconds = ([Item(name_of(columns_of(one)[0]), self.now(one.args[i])) for one in merged] for i in (0, 1))
        either = [replace(a, expr=logic.first_of((a.expr, b.expr))) for a, b in zip(firsts, seconds, strict=True)]
        around = (*on, *right.conjuncts)
        if keyed(around, second.alias) is not None:
            optional = (OptionalSource(second.alias, around),)
            both = (*own, *_nullable(other), *either) or (ONE,)
            selects = [Select("bag", (first, second), left.conjuncts, both, optional=optional)]
        else:
            pairs = Select("bag", (first, second), (*left.conjuncts, *around), (*own, *other, *either) or (ONE,))
            alone = Select("bag", (first,), left.conjuncts, (*own, *_nulls(other), *firsts) or (ONE,))
            selects = [pairs, replace(alone, absent=(self.partner(left, second, around, False),))]
        rest = Select("bag", (second,), right.conjuncts, (*_nulls(own), *other, *seconds) or (ONE,))
        selects.append(replace(rest, absent=(self.partner(right, first, (*on, *left.conjuncts), False),)))
        source = self.source(Bound(tuple(selects)), f"{first.alias}_{second.alias}")
        self._move([*own, *other], source, 0)
        for one, column in zip(merged, source.columns[len(own) + len(other) :], strict=False):
            made = self.moved[self.merged[key(one)]] = source.column(column)
            self.kept.add(made.name)
        return source

    def partner(self, row: Joined, source: Source, terms: tuple[Expr, ...], distinct: bool) -> Absent:
        """The source of a row's partners, and the pairs that find them.

        ``distinct``: each key once, so that an inner join preserves the multiplicity of the row.
        """
        found = keyed(terms, source.alias, row.aliases - row.required)
        if found is None:
            columns = _columns_around(terms, source.alias)
            others: list[Expr] = [*columns.values()]
            if row.left or row.full:
                row = self.flat(simplified(row))
                terms = tuple(map(self.now, terms))
                columns = _columns_around(terms, source.alias)
            proven = frozenset[str]().union(*map(rejects_null, terms))
            bag = self.bag_with(row, columns, proven)
            items = tuple(replace(item, expr=refined(item.expr, proven)) for item in bag.items)
            bag = replace(bag, sources=(*bag.sources, source), conjuncts=(*bag.conjuncts, *terms), items=items)
        elif not distinct and self.views.is_positive(source):
            return Absent(source, found.filters, found.pairs)
        else:
            never_null = frozenset[str]().union(*map(rejects_null, found.filters))
            items = tuple(Item(f"k{i}", refined(own, never_null)) for i, (own, _) in enumerate(found.pairs, 1))
            bag = Select("bag", (source,), found.filters, items)
            others = [other for _, other in found.pairs]
        made = self.source(Bound((distinct_over(bag),)), _KEY)
        return Absent(made, (), tuple((made.column(c), other) for c, other in zip(made.columns, others, strict=True)))


def _rejected(term: Expr, aliases: Collection[str]) -> bool:
    return rejects(term, lambda name: alias_of(name) in aliases)


def _columns_around(terms: tuple[Expr, ...], alias: str) -> dict[str, Column]:
    """The columns of ON that belong to other sources, by key."""
    around = dict.fromkeys(name for term in terms for name in columns_of(term) if alias_of(name) != alias)
    nodes = {node.name: node for term in terms for node in _columns(term)}
    return {name: nodes[name] for name in around}


def _columns(expr: Expr) -> Iterator[Column]:
    if isinstance(expr, Column):
        yield expr
    elif not isinstance(expr, Literal):
        for arg in expr.args:
            yield from _columns(arg)


def _exprs(joined: Joined) -> Iterator[Expr]:
    """The predicates of a join, without those inside its outer joins."""
    yield from joined.conjuncts
    yield from (other for absent in joined.absent for _, other in absent.pairs)
    yield from (term for one in joined.left for term in one.on)
    yield from (term for one in joined.full for term in one.on)


def _mapped_absent(absent: Absent, to: Callable[[Expr], Expr]) -> Absent:
    return replace(absent, pairs=tuple((own, to(other)) for own, other in absent.pairs))


def _nullable(items: Iterable[Item]) -> tuple[Item, ...]:
    return tuple(replace(i, expr=with_nullability(i.expr, dict.fromkeys(columns_of(i.expr), True))) for i in items)


def _nulls(items: Iterable[Item]) -> tuple[Item, ...]:
    return tuple(replace(item, expr=null(item.expr.type)) for item in items)
