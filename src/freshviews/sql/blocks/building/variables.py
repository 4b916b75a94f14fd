"""Makes the variables and the atoms of a block. An atom is one table or view of the join.

Columns that the join makes equal share one variable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache

from freshviews.expr.nodes import Call, Column, Expr, Literal
from freshviews.query.query import Atom
from freshviews.records import dataclass
from freshviews.sql.blocks.building.join import Join
from freshviews.sql.blocks.optional import Keyed
from freshviews.sql.expressions.build import call, has_host, is_guarded, key, nodes_of, refined, rejects_null, renamed
from freshviews.sql.names.scope import Source, aliases_in, name_of
from freshviews.types import BOOLEAN

_NUMBER = "\x1c"
_LONGEST = 32


@dataclass(frozen=True)
class Variable:
    """``members``: the expression of the variable in each atom, by alias. ``wish``: the preferred name."""

    members: Mapping[str, Expr]
    wish: str


class Variables:
    """The variables of one block, in order of creation."""

    def __init__(self, join: Join) -> None:
        self.join = join
        self._made: list[Variable] = []
        self._orders: dict[str, dict[str, int]] = {}
        self._by_key: dict[tuple[object, ...], int] = {}
        for shared in join.shared:
            place = self._add(Variable(shared.members, _wish(next(iter(shared.members.values())))))
            for term in shared.terms:
                self._by_key[key(term)] = place
        self._given: dict[str, dict[int, Expr]] = {}
        self._equal: dict[str, tuple[Expr, ...]] = {}
        for alias, keys in join.optional.items():
            self._give(alias, keys)

    def _give(self, alias: str, keys: Keyed) -> None:
        """Make the variables by which an optional source is looked up; if two of its values equal one variable, a
        filter makes them equal."""
        given = self._given[alias] = dict[int, Expr]()
        for own, other in keys.pairs:
            variable = self.of(other)
            first = given.setdefault(_place(variable.name), own)
            if first is not own:
                self._equal[alias] = (*self._equal.get(alias, ()), call("null_safe_eq", (first, own), BOOLEAN))

    def of(self, expr: Expr, wish: str = "") -> Column:
        """The variable of an expression that reads at most one source; made if missing."""
        place = self._by_key.get(key(expr))
        if place is None:
            place = self._by_key[key(expr)] = self._add(Variable({self._home(expr): expr}, _wish(expr, wish)))
        return _reference(place, expr)

    def again(self, expr: Expr, wish: str = "") -> Column:
        """A second variable for an expression that already has one."""
        return _reference(self._add(Variable({self._home(expr): expr}, _wish(expr, wish))), expr)

    def find(self, expr: Expr) -> Column | None:
        place = self._by_key.get(key(expr))
        return None if place is None else _reference(place, expr)

    def over(self, expr: Expr, lazily: bool = False, wish: str = "") -> Expr:
        """Rewrite the expression over variables.

        The largest parts that read one source become variables, unless their columns already are. With ``lazily``, for
        a branch of a CASE, parts that may fail stay where they are, because the CASE may exclude them.
        """
        found = self.find(expr)
        if found is not None or isinstance(expr, Literal):
            return found or expr
        if isinstance(expr, Column):
            return self.of(expr)
        aliases = aliases_in(expr)
        known = all(self.find(n) for n in nodes_of(expr) if isinstance(n, Column)) and not has_host(expr)
        if len(aliases) == 1 and not known and not (lazily and is_guarded(expr)) and self.join.in_atom(expr):
            return self.of(expr, wish)
        # A constant stays one: some operations, as in_frame, describe themselves by constants.
        args = tuple(
            arg if isinstance(arg, Literal) else self.over(arg, lazily or is_lazy(expr.op, i))
            for i, arg in enumerate(expr.args)
        )
        return replace(expr, args=args)

    def _add(self, variable: Variable) -> int:
        self._made.append(variable)
        return len(self._made) - 1

    def _home(self, expr: Expr) -> str:
        """The source that an expression reads; the first source for a constant."""
        return next(iter(aliases_in(expr)), self.join.sources[0].alias)

    def atoms(self, needed: Collection[str], extra: Mapping[str, tuple[Expr, ...]] | None = None) -> tuple[Atom, ...]:
        """One atom per source, with its shared and given variables and those in ``needed``, in the order of the
        relation's columns.

        ``extra``: further filters by alias. They make an optional source required, and the sources by which it is
        looked up.
        """
        extra = dict(extra or {})
        optional = dict(self.join.optional)
        for alias, keys in reversed([*self.join.optional.items()]):
            if alias in extra:
                del optional[alias]
                known = frozenset[str]().union(*map(rejects_null, self.join.filters[alias]))
                for own, other in keys.pairs:
                    if other.nullable and aliases_in(other) and not refined(own, known).nullable:
                        (home,) = aliases_in(other)
                        extra[home] = (*extra.get(home, ()), call("is_not_null", (other,), BOOLEAN))
        return tuple(self._atom(source, needed, extra, source.alias in optional) for source in self.join.sources)

    def _atom(
        self, source: Source, needed: Collection[str], extra: Mapping[str, tuple[Expr, ...]], optional: bool
    ) -> Atom:
        alias = source.alias
        order = self._orders.setdefault(alias, {})
        if not order:
            order.update((source.column(column).name, i) for i, column in enumerate(source.columns))
        given = self._given.get(alias, {})
        shared = {place for other in self._given.values() for place in other}
        wanted = {_place(name) for name in needed if name.startswith(_NUMBER)}
        own = {
            place: self._made[place].members[alias]
            for place in {*range(len(self.join.shared)), *shared, *wanted}
            if alias in self._made[place].members
        }
        members = own | given

        def first_column(place: int) -> int:
            names = (n.name for n in nodes_of(members[place]) if isinstance(n, Column))
            return min((order[name] for name in names), default=len(order))

        places = sorted(sorted(members), key=first_column)
        filters = (*self.join.filters[alias], *self._equal.get(alias, ()), *extra.get(alias, ()))
        return Atom(
            alias,
            source.relation,
            tuple(_id(place) for place in places),
            tuple(at_leaf(members[place]) for place in places),
            tuple(map(at_leaf, sorted(filters, key=is_guarded))),
            tuple(_id(place) for place in places if place in given) if optional else None,
        )

    def member(self, variable: str) -> tuple[str, Expr]:
        """An alias and the variable's expression over that source."""
        return next(iter(self._made[_place(variable)].members.items()))

    def naming(self) -> Callable[[str], str]:
        """A function that maps numbers to final names and leaves other names unchanged."""
        homes: dict[str, set[str]] = {}
        for variable in self._made:
            homes.setdefault(variable.wish.lower(), set()).add(next(iter(variable.members)))
        names: dict[str, str] = {}
        taken = Names()
        for place, variable in enumerate(self._made):
            name = variable.wish
            if len(homes[name.lower()]) > 1:
                name = f"{_word(next(iter(variable.members)))}_{name}"
            names[_id(place)] = taken.take(name)
        return lambda name: names.get(name, name)


class Names:
    """Used names, compared regardless of case."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(map(str.lower, taken))

    def take(self, wish: str) -> str:
        """The wish, with a number appended if it is used; it counts as used from then on."""
        name, number = wish, 2
        while name.lower() in self._taken:
            name, number = f"{wish}_{number}", number + 1
        self._taken.add(name.lower())
        return name


def free_name(wish: str, taken: Iterable[str]) -> str:
    """The wish, with a number appended if it is used."""
    return Names(taken).take(wish)


def at_leaf(expr: Expr) -> Expr:
    """Rewrite an expression over one source to the relation's own columns."""
    return renamed(expr, name_of)


def _id(place: int) -> str:
    return f"{_NUMBER}{place}"


def _place(name: str) -> int:
    return int(name[len(_NUMBER) :])


def _reference(place: int, expr: Expr) -> Column:
    return Column(_id(place), expr.type, expr.nullable)


def is_lazy(op: str, argument: int) -> bool:
    """True if the operation evaluates this argument for some rows only."""
    return op in ("case", "coalesce", "and", "or") and argument > 0


def _wish(expr: Expr, wish: str = "") -> str:
    if wish:
        return _word(wish)
    if isinstance(expr, Column):
        return _word(name_of(expr.name))
    if isinstance(expr, Call) and expr.op in ("check_range", "scale_up", "int_to_float", "coalesce"):
        return _wish(expr.args[0])
    if isinstance(expr, Call):
        columns = dict.fromkeys(_word(name_of(n.name)) for n in nodes_of(expr) if isinstance(n, Column))
        return "_".join([expr.op.removesuffix("_int").removesuffix("_float"), *columns][:3])
    return "constant"


@lru_cache(maxsize=1 << 12)
def _word(name: str) -> str:
    """The name as an identifier for the printed program."""
    word = re.sub(r"\W+", "_", name)[:_LONGEST].strip("_") or "column"
    return f"_{word}" if word[0].isdigit() else word
