"""Chooses the cheapest way to initialise an empty view: the order in which the rows of tables run through its triggers.

For a view tree that counts paths of three edges, S should come last: its rows then only look up two sums::

    on R(a, b) += m:                on S(b, c) += m:                  on T(c, d) += m:
        V_a[b] += m                     if v_d := V_d[c]:                 V_d[c] += m
        if v_c := V_c[b]:                   V_c[b] += m * v_d             for b, s in S[_, c]:
            Q[] += m * v_c                  if v_a := V_a[b]:                 V_c[b] += m * s ...
                                                Q[] += m * v_d * v_a
                                        S[b, c] += m
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from freshviews.program.program import Program
from freshviews.program.roles import Often
from freshviews.program.statements import Body, Move, Statement
from freshviews.program.structure import Visit, bodies, slice_of, uses, visit, visits, work
from freshviews.program.upkeep import ByTriggers, Recomputed
from freshviews.records import dataclass

EXHAUSTIVE = 7
"""Maximum number of triggers for which all orders are compared."""
FEW = 10_000
"""Rows, over all relations, below which any order is fast enough."""


@dataclass(frozen=True)
class Pass:
    """The rows of a relation run through some of its triggers, given by their positions in the program."""

    relation: str
    triggers: tuple[int, ...]


def passes(program: Program, relations: Sequence[str], sizes: Mapping[str, float]) -> tuple[Pass, ...] | None:
    """The passes that initialise empty views; None if taking the ``relations`` in their order, each through all of its
    triggers, is as good. ``sizes`` are rows by relation.

    The estimated cost of a trigger depends on which triggers ran before it, but not on their order. So dynamic
    programming over sets finds the order of least cost. If there are many triggers, the order is chosen from the back:
    last comes the trigger that costs least after all others. This makes the highest cost as low as possible (Lawler,
    Optimal Sequencing of a Single Machine Subject to Precedence Constraints, Management Science 19(5), 1973).
    """
    numbers = range(len(program.triggers))
    plain = [
        Pass(name, found)
        for name in relations
        if (found := tuple(k for k in numbers if program.triggers[k].relation == name))
    ]
    if program.balancing is not None or not isinstance(program.upkeep, ByTriggers | Recomputed) or len(numbers) < 2:
        return None
    if sum(sizes.values()) < FEW:
        return None
    costs = _Costs(program, sizes)
    apart = _merge_passes(costs, _in_order(costs))
    return tuple(apart) if costs.of(apart) < costs.of(plain) else None


class _Costs:
    """Estimated loop iterations of triggers. A view has as many rows as the largest relation that adds to it. Every
    column has as many values as the square root of the rows of the largest relation, so a join of two relations has the
    same estimated size from either side."""

    def __init__(self, program: Program, sizes: Mapping[str, float]) -> None:
        self.program = program
        self.sizes = sizes
        rows: dict[str, float] = {}
        for trigger in program.triggers:
            for statement in visit(trigger.body):
                for view in uses(statement).changes:
                    rows[view] = max(rows.get(view, 1.0), sizes.get(trigger.relation, 0.0))
        self.rows = rows
        self.values = max(rows.values(), default=1.0) ** 0.5
        self._known: dict[tuple[int, frozenset[int]], float] = {}
        self._rows_in: dict[frozenset[int], set[tuple[str, str]]] = {}

    def cost(self, number: int, fed: frozenset[int]) -> float:
        """The cost of all rows of a trigger, after those of ``fed``."""
        fed |= {number}
        if (number, fed) not in self._known:
            trigger = self.program.triggers[number]
            walk = _Walk(self._views_with_rows(fed), self.rows, self.values)
            walk.body(trigger.body, 1.0)
            self._known[number, fed] = self.sizes.get(trigger.relation, 0.0) * (1.0 + walk.turns)
        return self._known[number, fed]

    def of(self, order: Sequence[Pass]) -> float:
        """The cost of all passes in this order. Each reads its rows once."""
        total, fed = 0.0, frozenset[int]()
        for one in order:
            fed |= frozenset(one.triggers)
            total += self.sizes.get(one.relation, 0.0) + sum(self.cost(number, fed) for number in one.triggers)
        return total

    def _views_with_rows(self, fed: frozenset[int]) -> set[tuple[str, str]]:
        """The views, and their subsets, that have rows once the triggers have run; pairs of a view and a subset, whose
        name is empty for the whole view."""
        filled = self._rows_in.setdefault(fed, set())
        before = -1
        while len(filled) > before:
            before = len(filled)
            for number in fed:
                _Walk(filled, self.rows, self.values).body(self.program.triggers[number].body, 1.0)
        return filled


def _in_order(costs: _Costs) -> list[int]:
    """The triggers in the order of least cost. Ties keep the order of the program."""
    everything = frozenset(range(len(costs.program.triggers)))
    if len(everything) > EXHAUSTIVE:
        return _from_the_back(costs, everything)
    best: dict[frozenset[int], tuple[float, list[int]]] = {frozenset(): (0.0, [])}
    for _ in everything:
        longer: dict[frozenset[int], tuple[float, list[int]]] = {}
        for before, (so_far, order) in best.items():
            for number in sorted(everything - before):
                after, total = before | {number}, so_far + costs.cost(number, before)
                if after not in longer or (total, [*order, number]) < longer[after]:
                    longer[after] = total, [*order, number]
        best = longer
    return best[everything][1]


def _from_the_back(costs: _Costs, left: frozenset[int]) -> list[int]:
    """The order from the back: last comes the trigger that costs least after all others."""
    order: list[int] = []
    while left:
        last = min(left, key=lambda number: (costs.cost(number, left), -number))
        order.insert(0, last)
        left -= {last}
    return order


def _merge_passes(costs: _Costs, order: Sequence[int]) -> list[Pass]:
    """A pass per trigger. Consecutive triggers of one relation share a pass unless that makes one of them more
    expensive."""
    found: list[Pass] = []
    fed = frozenset[int]()
    for number in order:
        relation = costs.program.triggers[number].relation
        if found and found[-1].relation == relation:
            both = (*found[-1].triggers, number)
            if all(costs.cost(one, fed | {number}) == costs.cost(one, fed) for one in found[-1].triggers):
                found[-1] = Pass(relation, tuple(sorted(both)))
                fed |= {number}
                continue
        found.append(Pass(relation, (number,)))
        fed |= {number}
    return found


@dataclass
class _Walk:
    """Counts loop iterations of statements while rows are inserted and none is deleted. ``filled`` collects the views
    that the statements add to."""

    filled: set[tuple[str, str]]
    rows: Mapping[str, float]
    """Rows by view."""
    values: float
    """Number of values of a column."""
    turns: float = 0.0
    _sums: set[str] = field(default_factory=set)
    """Aliases of sums that have got an addition."""
    _views: dict[str, str] = field(default_factory=dict)
    """Views by the alias of a row."""

    def body(self, body: Body, times: float) -> None:
        """Visit statements that run ``times`` times for a row."""
        for statement in body:
            self.statement(statement, times)

    def statement(self, statement: Statement, times: float) -> None:
        found = uses(statement)
        for alias in found.rows:
            self._views[alias] = next(iter((*found.changes, *found.views)), "")
        self._sums.difference_update(found.rows)
        self.filled.update((view, "") for view in found.changes)
        if all((view, "") in self.filled for view in found.views):
            self._sums.update(work(statement).into)
        if isinstance(statement, Move):
            if statement.sign < 0:
                return
            self.filled.add((self._views.get(statement.alias, ""), statement.subset))
        for body, one in zip(bodies(statement), visits(statement), strict=True):
            self.inner(statement, body, one, times)

    def inner(self, statement: Statement, body: Body, one: Visit, times: float) -> None:
        """Visit a body of a statement that runs ``times`` times."""
        rows = slice_of(statement)
        match one.often:
            case Often.EACH:
                assert rows is not None
                if (rows.view, rows.among) in self.filled:
                    times *= self.rows[rows.view] / (self.values if rows.bound else 1.0)
                    self.turns += times
                    self.body(body, times)
            case Often.FOUND:
                assert rows is not None
                if (rows.view, rows.among) in self.filled:
                    self.body(body, times)
            case Often.SHORTER:
                sides = bodies(statement)
                slices = (slice_of(loop) for (loop,) in sides)
                if body is sides[0] and all(rows and (rows.view, rows.among) in self.filled for rows in slices):
                    self.body(body, times)
            case Often.NONZERO:
                if self._sums.issuperset(uses(statement).rows):
                    self.body(body, times)
            case Often.APPEARS | Often.ALONE:
                # A key is new once, so its statements run at most once per row of the relation.
                self.body(body, min(times, 1.0) / self.values)
            case Often.FULL:
                if one.owner.amount >= 0:
                    self.body(body, times)
            case Often.VANISHES | Often.WANTED:
                # No row is deleted, and no subscriber wants the change while a view is initialised.
                pass
            case _:
                self.body(body, times)
