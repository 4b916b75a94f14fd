"""Defines ``Strategy``: an object that makes the program of a block, which is one SELECT.

A *request* is a block to be planned. A *preference* is a condition under which the planner chooses a strategy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from freshviews.catalog.definitions import TableDef, ViewDef
from freshviews.errors import PlanError
from freshviews.program.program import Program
from freshviews.query.block import Block
from freshviews.query.dependencies import FD, from_keys
from freshviews.query.query import Query
from freshviews.query.query_class import QueryClass
from freshviews.records import dataclass


class TooLarge(PlanError):
    """Raised if the program of a block would be larger than its strategy writes or the planner takes. ``limit``: the
    largest accepted size."""

    def __init__(self, message: str, limit: str) -> None:
        super().__init__(message)
        self.limit = limit


OPTIONAL, NEGATED = "outer joins", "NOT EXISTS"
"""Kinds of atoms, in a user's words."""
EVERY_KIND = frozenset({OPTIONAL, NEGATED})


@dataclass(frozen=True)
class Request:
    """A block of a view, to be planned.

    ``inputs`` are the relations that the view reads, by name, and ``sizes`` their rows. ``dependencies`` are the
    checked keys, as functional dependencies of the block's query. ``expected`` are all declared keys: those of trusted
    tables are not checked, so a choice may depend on them, but no program. ``negative`` names, in order, the inputs
    whose rows may have a negative multiplicity. ``options`` are the TBLPROPERTIES of the view. ``strategies`` are all
    that a user may name.
    """

    view: ViewDef
    block: Block
    inputs: Mapping[str, TableDef | ViewDef]
    dependencies: tuple[FD, ...]
    expected: tuple[FD, ...]
    kind: QueryClass
    sizes: Mapping[str, float]
    negative: tuple[str, ...]
    options: Mapping[str, str]
    strategies: Mapping[str, Strategy]
    made: dict[str, Program] = field(default_factory=dict)
    """Programs that conditions already made, by strategy."""

    @property
    def query(self) -> Query:
        """The main query of the block."""
        return self.block.query

    def keys_of(self, query: Query) -> tuple[FD, ...]:
        """The checked keys of its relations, as dependencies of a query of the block."""
        return self.dependencies if query is self.query else from_keys(query, checked_keys(self.inputs))

    @property
    def joins_negative(self) -> bool:
        """True if rows of a relation of the main query may have a negative multiplicity."""
        return any(atom.relation in self.negative for atom in self.query.atoms)

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of atoms of the query, besides ordinary ones."""
        optional = any(atom.given is not None for atom in self.query.atoms)
        return frozenset([*([OPTIONAL] if optional else []), *([NEGATED] if self.query.negated else [])])

    @property
    def needs_held_groups(self) -> bool:
        """True if every strategy stores the groups: for MIN, MAX and DISTINCT aggregates, and for several grouping
        sets, as one derivation is in a group of each."""
        return bool(self.block.distinct or self.block.sets)

    @property
    def is_distinct(self) -> bool:
        """True if the block is the distinct rows of a join."""
        return self.block.kind == "groups" and not self.block.results and not self.needs_held_groups


def checked_keys(inputs: Mapping[str, TableDef | ViewDef]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """The keys that hold after every batch: those that are checked, and the groups of views."""
    return {name: relation.checked_keys for name, relation in inputs.items()}


def declared_keys(inputs: Mapping[str, TableDef | ViewDef]) -> dict[str, tuple[tuple[str, ...], ...]]:
    """The keys that are expected to hold: checked keys, and those of trusted tables."""
    return {
        name: relation.keys if isinstance(relation, TableDef) else relation.checked_keys
        for name, relation in inputs.items()
    }


Condition = Callable[[Request], str | None]
"""The reason for which a strategy is taken for a request, as EXPLAIN shows it; None if the condition does not hold.
Raises TooLarge if only the size of the program is against it."""


@dataclass(frozen=True)
class BagPlanner:
    """Maintains the bags of a cyclic query. ``plan`` makes the program of one bag, which holds the rows of the bag in a
    view that it only adds to. ``widened``: more variables in the output enlarge only that view."""

    plan: Callable[[Query], Program]
    widened: bool = False


def _no_query(query: Query) -> Program:
    raise PlanError(f"{query.name}: this strategy plans blocks, not queries")


@dataclass(frozen=True)
class Strategy:
    """An algorithm that maintains views.

    ``plan`` makes the program of a block. ``of_query`` makes the program of a query without a block and options, if
    that is possible. ``bags`` makes the planner for bags of other queries, or is None; without a request, no option is
    read.

    ``properties`` are the options that it reads. A view that sets one of those that it ``owns``, and names no strategy,
    names this one. ``hints`` are options that it reads and that every strategy accepts; ``check`` raises PlanError
    where they cannot be read.

    ``stores_rows``: the program stores the rows of its relations and the result, and nothing else.
    """

    name: str
    plan: Callable[[Request], Program]
    of_query: Callable[[Query], Program] = _no_query
    bags: Callable[[Request | None], BagPlanner] | None = None
    properties: frozenset[str] = frozenset()
    owns: frozenset[str] = frozenset()
    hints: frozenset[str] = frozenset()
    check: Callable[[Request], None] = lambda request: None
    stores_rows: bool = False
    kinds: frozenset[str] = frozenset()
    """The kinds of atoms that it joins, besides ordinary ones."""
    inner: str = ""
    """The option that names a strategy below this one; this strategy also reads the properties of that one."""

    def reads(self, request: Request) -> frozenset[str]:
        """The properties that it reads, with those of the strategy below it."""
        below = request.strategies.get(request.options.get(self.inner, ""))
        return self.properties | (below.properties if below is not None else frozenset())


@dataclass(frozen=True)
class Preference:
    """The planner takes the strategy if the condition holds. ``note`` adds lines to EXPLAIN."""

    condition: Condition
    strategy: Strategy
    note: Callable[[Query], tuple[tuple[str, str], ...]] | None = None


@dataclass(frozen=True)
class Necessity:
    """A kind of block that one strategy alone can maintain.

    ``refusal`` is the error if the view names another strategy, ``{other}``; without it, the name is ignored.
    """

    condition: Condition
    strategy: Strategy
    refusal: str = ""


@dataclass(frozen=True)
class Plan:
    """A block's program, the strategy that made it, and why this one. ``keys``: the checked keys of the inputs, by
    name; ``expected``: all that are declared, by which costs are computed."""

    program: Program
    kind: QueryClass
    by: Strategy
    reason: str
    keys: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    expected: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)

    @property
    def strategy(self) -> str:
        """The name of the strategy."""
        return self.by.name
