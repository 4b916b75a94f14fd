"""Makes the fresh names of a program, which differ from the names of the user's query."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from functools import lru_cache

from freshviews.expr.nodes import Column, columns_of
from freshviews.program.payload import MULTIPLICITY
from freshviews.program.program import Parameter, Program
from freshviews.program.statements import Body
from freshviews.program.structure import uses, variables_read, visit
from freshviews.query.query import Aggregate, Lift, Query

RESULT = "Q"
"""The view that holds the result, in every program that stores it."""

LiftKey = tuple[Hashable, ...]


class Namer:
    """Makes names for the program of one query, each different from all others.

    A wanted name is used as it is, or with marks at its end if it is in use. Names are compared after ``fold``:
    ``str.lower`` for names that users may write in any case. ``taken``: further folded names that fresh names must
    differ from.
    """

    def __init__(self, query: Query, taken: Iterable[str] = (), fold: Callable[[str], str] = str) -> None:
        self._fold = fold
        self._variables = frozenset(query.variables)
        self._lifts = lift_names(query)
        self._taken = {*map(fold, (RESULT, *chosen_names(query), *self._lifts.values())), *taken}
        self._known: dict[Hashable, str] = {}

    def fresh(self, wanted: str, mark: str = "_") -> str:
        """A new name: the wanted one, with as many marks as make it new."""
        name = wanted
        while self._fold(name) in self._taken:
            name += mark
        self._taken.add(self._fold(name))
        return name

    def of(self, thing: Hashable, wanted: str, mark: str = "_") -> str:
        """The name of a thing. The first call makes it, later calls return it."""
        if thing not in self._known:
            self._known[thing] = self.fresh(wanted, mark)
        return self._known[thing]

    def view(self, wanted: str) -> str:
        """A new name for a view."""
        return self.fresh(wanted)

    def alias(self, view: str) -> str:
        """The name of a row of a view: the view's name in lower case."""
        return self.of(("alias", view), view.lower(), "_row")

    def row(self, view: str) -> str:
        """The name of a row of a view, with ``_row`` at its end in any case."""
        return self.of(("row", view), view.lower() + "_row")

    def marked(self, view: str, mark: str) -> str:
        """The name of a row of a view, other than those that joins use."""
        return self.of((mark, view), f"{view.lower()}_{mark}")

    def lift(self, lift: Lift, aggregate: Aggregate) -> str:
        """The variable that holds a lift inside an atom."""
        return self._lifts[lift.atom, lift.expr, aggregate.ring]

    def columns(self, parameters: Iterable[Parameter]) -> tuple[Parameter, ...]:
        """Parameters named by their columns, not by variables of the query: the atoms that share a store have different
        variables for one column."""
        made: list[Parameter] = []
        for one in parameters:
            column = one.expr.name if isinstance(one.expr, Column) else one.name
            free = column not in self._variables and column not in {p.name for p in made}
            name = column if free else self.of(("column", column, len(made)), f"{column}_0", "_0")
            made.append(Parameter(name, one.expr))
        return tuple(made)


def joined_name(atoms: tuple[str, ...]) -> str:
    """A name for the join of atoms: ``RST``, or with underscores where names are longer."""
    return ("" if all(len(name) == 1 for name in atoms) else "_").join(atoms)


def chosen_names(query: Query) -> frozenset[str]:
    """The names that the user chose: the variables of a query, and the columns that it reads."""
    exprs = [lift.expr for aggregate in query.aggregates for lift in aggregate.lifts]
    for atom in query.occurrences:
        exprs += (*atom.columns, *atom.filters)
    return frozenset((*query.free, *query.variables, *(name for expr in exprs for name in columns_of(expr))))


@lru_cache(maxsize=128)
def lift_names(query: Query) -> Mapping[LiftKey, str]:
    """The variables that hold lifts.

    A lift inside an atom has the key (atom, expression, ring): equal lifts share a variable. A lift across atoms has
    the key (aggregate, number among those of the aggregate).
    """
    taken = set(chosen_names(query)) | {RESULT}
    found: dict[LiftKey, str] = {}
    for aggregate in query.aggregates:
        across = 0
        for lift in aggregate.lifts:
            if lift.atom is None:
                key: LiftKey = (aggregate.name, across)
                name = f"{aggregate.name}_across{across or ''}"
                across += 1
            else:
                key = (lift.atom, lift.expr, aggregate.ring)
                part = "" if lift.place is None else f"_{lift.place}"
                name = f"{aggregate.name}{part}_of_{lift.atom}"
            if key in found:
                continue
            while name in taken:
                name += "_"
            taken.add(name)
            found[key] = name
    return found


def names_in(program: Program) -> Iterator[str]:
    """All names of a program: of views, tries, variables and rows. A name may come several times."""
    yield from (view.name for view in program.stores)
    yield from (trie.name for trie in program.upkeep.tries)
    for trigger in program.triggers:
        variables, aliases = names_of(trigger.body)
        yield from (p.name for p in trigger.parameters)
        yield from (*variables, *aliases)


def names_of(body: Body) -> tuple[set[str], set[str]]:
    """The variables that statements mention, and the aliases of the rows and sums that they bind."""
    statements = tuple(visit(body))
    found = [uses(statement) for statement in statements]
    variables = {name for one in found for name in (*one.binds, *one.defines)}
    variables.update(*map(variables_read, statements))
    return variables - {MULTIPLICITY.name}, {alias for one in found for alias in one.rows}
