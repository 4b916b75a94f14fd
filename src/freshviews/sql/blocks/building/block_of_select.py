"""Converts a bound SELECT, whose names and types are resolved, to a ``Block``, the input of the planner."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import reduce

from freshviews.expr.nodes import Column, Expr, Literal
from freshviews.query.block import (
    BY,
    COFACTORS,
    EVERY,
    RINGS,
    SCANNED,
    Block,
    DistinctAggregate,
    Limit,
    Neighbour,
    Output,
    Result,
    SortColumn,
    counts_values,
)
from freshviews.query.grouping_sets import each
from freshviews.query.query import Aggregate, Atom, Lift, Query
from freshviews.sql.blocks.bound import (
    Absent,
    AggregateCall,
    Bound,
    Item,
    Limited,
    Select,
    Sort,
    aggregate_index,
    beside_ref,
    group_index,
    is_of_place,
    number_ref,
    there_ref,
)
from freshviews.sql.blocks.building import lifts
from freshviews.sql.blocks.building.gathering import over_texts
from freshviews.sql.blocks.building.join import Join, joined, localised
from freshviews.sql.blocks.building.late import with_failures
from freshviews.sql.blocks.building.least import over_least
from freshviews.sql.blocks.building.lifts import AcrossWithHost, Lifts
from freshviews.sql.blocks.building.variables import Names, Variables, at_leaf
from freshviews.sql.blocks.calls.cofactors import product_of
from freshviews.sql.blocks.grouping_sets import in_sets
from freshviews.sql.blocks.views import Views
from freshviews.sql.expressions.build import (
    call,
    has_host,
    integer,
    is_guarded,
    key,
    nodes_of,
    null,
    refined,
    rejects_null,
    renamed,
    replaced,
    retyped,
)
from freshviews.sql.names.scope import aliases_in, name_of
from freshviews.types import BIGINT, BOOLEAN, DOUBLE


def block_of(select: Select, views: Views) -> Block:
    """Return the block of a SELECT. Its queries have no names yet (see ``with_query_names``)."""
    if any(one.gathering is not None for one in select.aggregates):
        select = over_texts(select, views, lambda rows: block_of(rows, views))
    select = with_failures(select)
    with suppress(AcrossWithHost):
        return _Builder(select).block()
    least = over_least(select, views)
    return block_of(least, views) if least is not None else _Builder(_over_inner(select, views)).block()


def with_query_names(blocks: Sequence[Block], view: str) -> tuple[Block, ...]:
    """Name the queries of the blocks after the view: v, or v.1, v.2 for the branches of a UNION."""
    made = []
    for number, block in enumerate(blocks, 1):
        name = view if len(blocks) == 1 else f"{view}.{number}"
        distinct = tuple(replace(one, query=replace(one.query, name=f"{name}.{one.name}")) for one in block.distinct)
        made.append(replace(block, query=replace(block.query, name=name), distinct=distinct))
    return tuple(made)


def _over_inner(select: Select, views: Views) -> Select:
    """The SELECT rewritten over one internal view that joins its sources."""
    join = joined(select.sources, select.conjuncts, select.optional)
    scratch = Variables(join)
    outer = [c for c in join.conditions if has_host(scratch.over(c))]
    kept = tuple(c for c in select.conjuncts if c not in outer)
    wanted: list[Expr] = [*outer, *(group.expr for group in select.groups)]
    wanted += [other for absent in select.absent for _, other in absent.pairs]
    wanted += [arg for aggregate in select.aggregates for arg in aggregate.args]
    if select.kind == "bag":
        wanted += [item.expr for item in select.items]
        wanted += [] if select.having is None else [select.having]
    own = {c.name: c for source in select.sources for c in map(source.column, source.columns)}
    columns: dict[str, Column] = {}
    for column in (n for expr in wanted for n in nodes_of(expr) if isinstance(n, Column)):
        # Use the relation's type: a reference may read the code under a wider one.
        columns.setdefault(column.name, replace(own[column.name], nullable=column.nullable))
    items: dict[object, Item] = {}
    taken = Names()
    place: dict[str, int] = {}
    for name, column in columns.items():
        found = scratch.find(column)
        same = found.name if found is not None else name
        if same not in items:
            items[same] = Item(taken.take(name_of(name)), column)
        place[name] = list(items).index(same)
    inner = Select("bag", select.sources, kept, tuple(items.values()), optional=select.optional)
    view = views.internal_view(Bound((inner,)))
    source = views.source_of(view)

    def moved(expr: Expr) -> Expr:
        return replaced(expr, lambda n: source.column(source.columns[place[n.name]]) if isinstance(n, Column) else None)

    return replace(
        select,
        sources=(source,),
        optional=(),
        conjuncts=tuple(map(moved, outer)),
        groups=tuple(replace(group, expr=moved(group.expr)) for group in select.groups),
        aggregates=tuple(replace(a, args=tuple(map(moved, a.args))) for a in select.aggregates),
        items=tuple(replace(i, expr=moved(i.expr)) for i in select.items) if select.kind == "bag" else select.items,
        having=moved(select.having) if select.kind == "bag" and select.having is not None else select.having,
        absent=tuple(replace(a, pairs=tuple((own, moved(other)) for own, other in a.pairs)) for a in select.absent),
    )


@dataclass
class _Builder:
    """Builds one block. Raises AcrossWithHost if the SELECT needs an inner block."""

    select: Select
    join: Join = field(init=False)
    variables: Variables = field(init=False)
    free: list[str] = field(default_factory=list)
    sets: tuple[tuple[str, ...], ...] = ()
    components: dict[object, Aggregate] = field(default_factory=dict)
    distinct: dict[object, DistinctAggregate] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)
    values: list[Expr] = field(default_factory=list)
    named_results: Names = field(default_factory=Names)
    named_values: Names = field(default_factory=Names)

    def __post_init__(self) -> None:
        self.join = joined(self.select.sources, self.select.conjuncts, self.select.optional)
        self.variables = Variables(self.join)
        self._component("integer", Lifts(()), "count")

    def block(self) -> Block:
        select = self.select
        having: Expr | None = None
        limit: Limit | None = None
        if select.limit is not None and select.limit.frame is None:
            exprs, limit = self._first_rows(select.limit)
        elif select.kind == "bag":
            exprs, having = self._bag_outputs()
            if select.limit is not None:
                values = self.free
                limit = self._frames(select.limit)
                self.free += [name for name in values if name not in self.free]
        else:
            groups = self._groups()
            limit = None if select.limit is None else self._frames(select.limit)
            for aggregate in select.aggregates:
                self.values.append(self._value(aggregate))
            exprs = [self._resolved(item.expr, groups) for item in select.items]
            having = None if select.having is None else self._resolved(select.having, groups)
        conditions = tuple(self._condition(one) for one in self.join.conditions)
        aggregates = tuple(self.components.values())
        spanning = [lift.expr for a in aggregates for lift in a.lifts if lift.atom is None]
        negated = tuple(map(self._negated, select.absent))
        atoms = self._atoms((*conditions, *spanning), [v for atom in negated for v in atom.variables])
        query = Query("", tuple(self.free), atoms, aggregates, conditions, negated)
        distinct = tuple(replace(one, query=self._counting(one, conditions, negated)) for one in self.distinct.values())
        outputs = tuple(Output(item.name, expr) for item, expr in zip(select.items, exprs, strict=True))
        block = Block(select.kind, query, outputs, tuple(self.results), distinct, having, limit, self.sets)
        block = _named(block, self.variables.naming())
        return each(block)[0] if len(block.sets) == 1 else block

    def _atoms(self, exprs: Sequence[Expr], more: Sequence[str] = ()) -> tuple[Atom, ...]:
        used = {n.name for expr in exprs for n in nodes_of(expr) if isinstance(n, Column)}
        return self.variables.atoms({*self.free, *used, *more})

    def _condition(self, condition: Expr) -> Expr:
        made = self.variables.over(condition)
        if has_host(made):
            raise AcrossWithHost
        return made

    def _negated(self, absent: Absent) -> Atom:
        """A NOT EXISTS source as a negated atom. If two of its values equal one variable, a filter makes them equal.
        """
        own: dict[str, Expr] = {}
        filters = [*absent.filters]
        for value, around in absent.pairs:
            other = localised(around, self.join.shared)
            # An update of the absent source finds rows by these values; it cannot find a default row by its NULLs.
            if len(aliases_in(other)) > 1 or aliases_in(other) & self.join.optional.keys():
                raise AcrossWithHost
            first = own.setdefault(self.variables.of(other).name, value)
            if first is not value:
                filters.append(call("null_safe_eq", (first, value), BOOLEAN))
        columns = tuple(map(at_leaf, own.values()))
        filters.sort(key=is_guarded)
        return Atom(absent.source.alias, absent.source.relation, tuple(own), columns, tuple(map(at_leaf, filters)))

    def _bag_outputs(self) -> tuple[list[Expr], Expr | None]:
        """Items and condition over free variables; parts that may fail are computed from them after the join."""
        lazily = len(self.select.sources) > 1 or bool(self.select.absent)
        made: dict[int, Expr] = {}
        for i, item in enumerate(self.select.items):
            if isinstance(item.expr, Column):
                made[i] = self.variables.of(item.expr)
        for i, item in enumerate(self.select.items):
            if i not in made:
                made[i] = retyped(self.variables.over(item.expr, lazily, item.name), item.expr.type)
        exprs = [made[i] for i in range(len(made))]
        having = None if self.select.having is None else self.variables.over(self.select.having, lazily=True)
        wanted = exprs if having is None else [*exprs, having]
        names = (n.name for expr in wanted for n in nodes_of(expr) if isinstance(n, Column))
        self.free = list(dict.fromkeys(names))
        return exprs, having

    def _first_rows(self, limited: Limited) -> tuple[list[Expr], Limit]:
        """The items of a SELECT with LIMIT over free variables. Every expression of its groups and its ORDER BY gets a
        variable of the one source."""
        assert len(self.select.sources) == 1
        order: dict[str, SortColumn] = {}
        exprs: list[Expr] = []
        groups = [self.variables.of(one).name for one in limited.groups if not isinstance(one, Literal)]
        items = (Sort(item.expr, False, False) for item in self.select.items)
        for place, sort in enumerate((*limited.order, *items), -len(limited.order)):
            made = sort.expr
            if is_of_place(made):
                exprs.append(made)
                continue
            # Constants do not order rows; without other expressions, one constant is the row.
            if not isinstance(made, Literal) or (place == len(self.select.items) - 1 and not order):
                made = self.variables.of(made, "" if place < 0 else self.select.items[place].name)
                column = SortColumn(made.name, made.type, sort.descending, sort.nulls_last)
                if made.name not in groups:
                    order.setdefault(made.name, column)
            if place >= 0:
                exprs.append(made)
        if not order:
            one = self.variables.again(integer(1))
            order[one.name] = SortColumn(one.name, one.type)
        groups = list(dict.fromkeys(groups))
        self.free = [*groups, *order]
        number = number_ref().name if number_ref() in exprs else ""
        made_limit = Limit(tuple(order.values()), limited.limit, limited.offset, tuple(groups), number)
        if limited.shift:
            columns = (
                (self.variables.of(one).name, beside_ref(i, one).name) for i, one in enumerate(limited.beside)
            )
            made_limit = replace(made_limit, beside=Neighbour(limited.shift, there_ref().name, tuple(columns)))
        return exprs, replace(made_limit, ranks=limited.numbers == "rank")

    def _frames(self, limited: Limited) -> Limit:
        """The order of the rows that are the groups, which ends in all their variables."""
        groups = [self.variables.of(one).name for one in limited.groups if not isinstance(one, Literal)]
        own = (Sort(group.expr, False, False) for group in self.select.groups)
        order: dict[str, SortColumn] = {}
        for sort in (*limited.order, *own):
            made = self.variables.of(sort.expr)
            if made.name not in groups:
                order.setdefault(made.name, SortColumn(made.name, made.type, sort.descending, sort.nulls_last))
        groups = list(dict.fromkeys(groups))
        self.free = [*groups, *order]
        return Limit(tuple(order.values()), EVERY, 0, tuple(groups), beside=limited.frame)

    def _groups(self) -> list[Expr]:
        """The groups over free variables.

        The variables become free variables of the query; with grouping sets, the variables of most sets come first.
        """
        sets = self.select.sets
        exprs = [localised(group.expr, self.join.shared) for group in self.select.groups]
        made: dict[int, Expr] = {}
        for i, (group, expr) in enumerate(zip(self.select.groups, exprs, strict=True)):
            if isinstance(expr, Literal):
                made[i] = expr
            elif self.join.in_atom(expr):
                known = self.variables.find(group.expr)
                wish = "" if isinstance(expr, Column) else group.name
                made[i] = known or self.variables.of(expr, wish)
        self.free = list(dict.fromkeys(one.name for one in made.values() if isinstance(one, Column)))
        if sets:
            if len(made) < len(exprs):
                raise AcrossWithHost
            grouped = [{one.name for one in map(made.__getitem__, s) if isinstance(one, Column)} for s in sets]
            number = {v: sum(v in s for s in grouped) for v in self.free}
            self.free = sorted((v for v in self.free if number[v]), key=lambda v: -number[v])
            self.sets = tuple(tuple(v for v in self.free if v in s) for s in grouped)
        for i, expr in enumerate(exprs):
            if i not in made:
                made[i] = self._from_free(expr)
        values = [retyped(made[i], group.expr.type) for i, group in enumerate(self.select.groups)]
        return [in_sets(i, value, sets) for i, value in enumerate(values)] if sets else values

    def _from_free(self, expr: Expr) -> Expr:
        """Compute a group over several sources from the free variables, if they hold its columns."""
        for node in nodes_of(expr):
            if isinstance(node, Column):
                found = self.variables.find(node)
                if found is None or found.name not in self.free:
                    raise AcrossWithHost
        return replaced(expr, lambda n: self.variables.find(n) if isinstance(n, Column) else None)

    def _resolved(self, expr: Expr, groups: Sequence[Expr]) -> Expr:
        """Rewrite an item or HAVING over free variables and results."""

        def value(part: Expr) -> Expr | None:
            if not isinstance(part, Column):
                return None
            group, aggregate = group_index(part.name), aggregate_index(part.name)
            if group is not None:
                return groups[group]
            if aggregate is not None:
                return self.values[aggregate]
            return None

        return replaced(expr, value)

    def _value(self, call_: AggregateCall) -> Expr:
        """An aggregate call over results; most calls need one result."""
        args = call_.args
        if _is_scanned(call_.function):
            return self._result(call_, (self._distinct(call_.function, call_),))
        if call_.function in COFACTORS:
            family = "cofactor.double" if args[0].type.is_float else "cofactor.integer"
            made = lifts.of_arguments(args, self.variables)
            return self._result(call_, (self._component(family, made, _label("cofactor", call_)),))
        if call_.function in RINGS:
            made = lifts.of_arguments(args, self.variables)
            element = self._component(call_.ring, made, _label(call_.ring.partition(".")[0], call_))
            known = self._component("integer", lifts.of_known(made), _label("n", call_))
            return self._result(call_, (element, known))
        if call_.distinct:
            count = self._distinct("count", call_)
            if call_.function == "count":
                return self._result(call_, (count,))
            return self._result(call_, (self._distinct("sum", call_), count))
        if call_.function == "avg":
            terms = [lifts.of_one_count(args[0], self.variables)]
        else:
            terms = lifts.of_count(args, self.variables, computed=call_.function == "count")
        counts = [self._component("integer", term, _label("n", call_)) for term in terms]
        if call_.function == "count":
            return self._added([self._result(call_, (count,)) for count in counts])
        if args[0].type.is_float:  # also of sum_rest
            total = self._component("real", lifts.of_real_sum(args[0], self.variables), _label("sum", call_))
        else:
            total = self._component("integer", lifts.of_sum(args[0], self.variables), _label("sum", call_))
        if len(counts) == 1:
            return self._result(call_, (total, counts[0]))
        # Several components count the rows that are not NULL; the sum is NULL if all of them are 0.
        number = AggregateCall("count", args, False, BIGINT)
        rows = self._added([self._result(number, (count,)) for count in counts])
        value = self._result(call_, (total, "count"))
        return call("case", (call("gt", (rows, integer(0)), BOOLEAN), value, null(value.type)), value.type)

    def _added(self, counts: Sequence[Expr]) -> Expr:
        """The sum of the counts; 0 without counts, as the argument is then NULL in every row."""
        return reduce(lambda a, b: call("add_int", (a, b), BIGINT), counts) if counts else integer(0)

    def _result(self, call_: AggregateCall, components: tuple[str, ...]) -> Column:
        name = self.named_results.take(call_.label)
        argument = call_.summed.type if call_.args else BIGINT
        if call_.function in COFACTORS:
            argument = product_of(call_.args, call_.entry)
        nullable = self.select.kind == "global" or call_.needs_several or any(arg.nullable for arg in call_.args)
        nullable = nullable and call_.nullable
        self.results.append(Result(name, call_.function, components, argument, call_.type, nullable, call_.entry))
        return Column(name, call_.type, nullable)

    def _component(self, ring: str, made: Lifts, wish: str) -> str:
        identity = (ring, made.identity)
        known = self.components.get(identity)
        if known is None:
            known = self.components[identity] = Aggregate(self.named_values.take(wish), ring, made.lifts)
        return known.name

    def _distinct(self, kind: str, call_: AggregateCall) -> str:
        """Register a distinct aggregate and return its name. ``_counting`` completes its query."""
        args = [localised(arg, self.join.shared) for arg in call_.args]
        if not all(map(self.join.in_atom, args)):
            raise AcrossWithHost
        amount = call_.amount if kind == "sum" else None
        real = kind == "sum" and call_.summed.type.is_float
        args = [retyped(arg, DOUBLE) if real and amount is None else arg for arg in args]
        identity = (kind, () if amount is None else key(amount), *map(key, args))
        known = self.distinct.get(identity)
        if known is not None:
            return known.name
        chosen: list[str] = []
        # The ordering argument of MIN_BY and MAX_BY comes before the value.
        pairs = [*zip(call_.args, args, strict=True)][:: -1 if kind in BY else 1]
        for original, arg in pairs:
            variable = self.variables.find(original) or self.variables.of(arg, _wish(kind, arg))
            if variable.name in self.free or variable.name in chosen:
                variable = self.variables.again(arg, f"{kind}_argument")
            chosen.append(variable.name)
        scanned = _is_scanned(kind)
        name = self.named_values.take(_label(kind.partition(" ")[0] if scanned else f"{kind}_distinct", call_))
        kind_type = BIGINT if kind == "count" else call_.args[0].type if scanned else call_.type
        if kind == "sum" and call_.function == "avg":
            kind_type = DOUBLE if real else call_.summed.type
        # Atoms are added once every variable of the block is known; until then ``free`` holds the arguments.
        query, ring = Query("", tuple(chosen), ()), "real" if real else "integer"
        by = call_.args[1].type if kind in BY else None
        self.distinct[identity] = DistinctAggregate(name, kind, query, kind_type, ring, by, amount)
        return name

    def _counting(self, one: DistinctAggregate, conditions: tuple[Expr, ...], negated: tuple[Atom, ...]) -> Query:
        """The query of a distinct aggregate: groups and arguments are free, NULL arguments are filtered out."""
        query = one.query
        extra: dict[str, tuple[Expr, ...]] = {}
        for variable in query.free if one.by is None else query.free[:1]:
            alias, expr = self.variables.member(variable)
            if alias in self.join.optional:
                # A default row has NULL here: the source is required.
                extra.setdefault(alias, ())
            filters = (*self.join.filters[alias], *extra.get(alias, ()))
            if refined(expr, frozenset[str]().union(*map(rejects_null, filters))).nullable:
                extra[alias] = (*extra.get(alias, ()), call("is_not_null", (expr,), BOOLEAN))
        used = {n.name for expr in conditions for n in nodes_of(expr) if isinstance(n, Column)}
        used.update(v for atom in negated for v in atom.variables)
        atoms = self.variables.atoms({*self.free, *query.free, *used}, extra)
        return Query("", (*self.free, *query.free), atoms, conditions=conditions, negated=negated)


def _is_scanned(kind: str) -> bool:
    """True for an aggregate whose values are stored in order and scanned."""
    return kind in SCANNED or counts_values(kind)


def _label(prefix: str, call_: AggregateCall) -> str:
    names = [name_of(n.name) for arg in call_.args for n in nodes_of(arg) if isinstance(n, Column)]
    return "_".join([prefix, *dict.fromkeys(names)][:4])


def _wish(kind: str, arg: Expr) -> str:
    return f"{kind}_argument" if isinstance(arg, Literal) else ""


def _named(block: Block, name: Callable[[str], str]) -> Block:
    """Apply final names to variables everywhere, and rename results that would hide a variable."""
    variables = {name(v) for one in (block.query, *(d.query for d in block.distinct)) for v in one.variables}
    results: dict[str, str] = {}
    if block.limit is not None:
        results.update(_names_of_places(block.limit, name, variables))
    taken = Names([*variables, *results.values()])
    for result in block.results:
        results[result.name] = taken.take(result.name)

    def final(column: str) -> str:
        return results.get(column, name(column))

    return Block(
        block.kind,
        _named_query(block.query, name),
        tuple(Output(o.name, renamed(o.expr, final)) for o in block.outputs),
        tuple(replace(result, name=results[result.name]) for result in block.results),
        tuple(replace(one, query=_named_query(one.query, name)) for one in block.distinct),
        None if block.having is None else renamed(block.having, final),
        None if block.limit is None else _named_limit(block.limit, final),
        tuple(tuple(map(name, one)) for one in block.sets),
    )


def _named_limit(limit: Limit, name: Callable[[str], str]) -> Limit:
    order = tuple(replace(one, variable=name(one.variable)) for one in limit.order)
    beside = limit.beside
    if isinstance(beside, Neighbour):
        columns = tuple((name(own), name(other)) for own, other in beside.columns)
        beside = replace(beside, there=name(beside.there), columns=columns)
    return replace(
        limit, order=order, groups=tuple(map(name, limit.groups)), number=name(limit.number), beside=beside
    )


def _names_of_places(limit: Limit, name: Callable[[str], str], taken: Collection[str]) -> dict[str, str]:
    """Names for the variables whose value is the place of a row."""
    wishes = {limit.number: "rank" if limit.ranks else "row_number"} if limit.number else {}
    if isinstance(limit.beside, Neighbour):
        wishes[limit.beside.there] = "there"
        wishes.update((other, f"{name(own)}_beside") for own, other in limit.beside.columns)
    names = Names(taken)
    return {one: names.take(wish) for one, wish in wishes.items()}


def _named_query(query: Query, name: Callable[[str], str]) -> Query:
    def named(atoms: tuple[Atom, ...]) -> tuple[Atom, ...]:
        return tuple(
            replace(
                atom,
                variables=tuple(map(name, atom.variables)),
                given=None if atom.given is None else tuple(map(name, atom.given)),
            )
            for atom in atoms
        )

    return replace(
        query,
        free=tuple(map(name, query.free)),
        atoms=named(query.atoms),
        negated=named(query.negated),
        aggregates=tuple(
            replace(a, lifts=tuple(_named_lift(lift, name) for lift in a.lifts)) for a in query.aggregates
        ),
        conditions=tuple(renamed(condition, name) for condition in query.conditions),
    )


def _named_lift(lift: Lift, name: Callable[[str], str]) -> Lift:
    return lift if lift.atom is not None else replace(lift, expr=renamed(lift.expr, name))
