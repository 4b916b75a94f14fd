"""In which order an empty view is fed the rows of its tables, so that their deltas come to little.

Fed from empty, a delta costs what is there to join with. Of paths of three edges, counted over a view tree::

    on R(a, b) += m:                on S(b, c) += m:                  on T(c, d) += m:
        V_a[b] += m                     if v_d := V_d[c]:                 V_d[c] += m
        if v_c := V_c[b]:                   V_c[b] += m * v_d             for b, s in S[_, c]:
            Q[] += m * v_c                  if v_a := V_a[b]:                 V_c[b] += m * s ...
                                                Q[] += m * v_d * v_a
                                        S[b, c] += m

If S comes last, every row of it looks up two sums, as an evaluation from the leaves up would; if T does, each of its
rows goes through rows of S, as many in all as there are paths of two edges. So triggers run one after the other, each
over its whole table, even those of one table that occurs several times. The views are the same in the end: all state
is sums over what the tables hold.

What a trigger costs is told by its text and by which views have rows by then, the loops that run in it: by the set of
those before it, not by their order. So the least sum is found by dynamic programming over sets. Of many triggers the
one that costs least with all others fed is the last, and so on from the back, which makes the costliest as cheap as it
can be (Lawler, Optimal Sequencing of a Single Machine Subject to Precedence Constraints, Management Science 19(5),
1973).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from freshviews.program.program import Program
from freshviews.program.statements import (
    Add,
    Balance,
    Changed,
    Clear,
    Emit,
    Enter,
    Exists,
    If,
    Into,
    Leap,
    Leave,
    Let,
    Lookup,
    Loop,
    Perform,
    Scan,
    Smaller,
    Statement,
    Sum,
    Tally,
    Top,
)
from freshviews.program.structure import visit
from freshviews.program.upkeep import ByTriggers, Recomputed

Body = tuple[Statement, ...]

EXHAUSTIVE = 7
"""Triggers of which all orders are compared."""
FEW = 10_000
"""Rows of all relations below which it does not matter in which order they come."""


@dataclass(frozen=True)
class Pass:
    """A relation's rows go through some of its triggers, by their numbers in the program."""

    relation: str
    triggers: tuple[int, ...]


def passes(program: Program, relations: Sequence[str], sizes: Mapping[str, float]) -> tuple[Pass, ...] | None:
    """The passes that fill empty views; None where it is as good to feed the ``relations``, whose rows are ``sizes``,
    in their order, each to all of its triggers."""
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
    apart = _joined(costs, _in_order(costs))
    return tuple(apart) if costs.of(apart) < costs.of(plain) else None


class _Costs:
    """Turns of loops that triggers take, estimated: a view has as many rows as the largest relation that adds to it,
    and what slices are asked for has as many values everywhere as the root of the rows of the largest relation. So a
    join of two relations comes to as many pairs from either side."""

    def __init__(self, program: Program, sizes: Mapping[str, float]) -> None:
        self.program = program
        self.sizes = sizes
        rows: dict[str, float] = {}
        for trigger in program.triggers:
            for statement in visit(trigger.body):
                if isinstance(statement, Add):
                    rows[statement.view] = max(rows.get(statement.view, 1.0), sizes.get(trigger.relation, 0.0))
        self.rows = rows
        self.values = max(rows.values(), default=1.0) ** 0.5
        self._known: dict[tuple[int, frozenset[int]], float] = {}
        self._rows_in: dict[frozenset[int], set[tuple[str, str]]] = {}

    def cost(self, number: int, fed: frozenset[int]) -> float:
        """Of the rows of a trigger, where those of others are fed before it or meanwhile."""
        fed |= {number}
        if (number, fed) not in self._known:
            trigger = self.program.triggers[number]
            walk = _Walk(self._filled(fed), self.rows, self.values)
            walk.body(trigger.body, 1.0)
            self._known[number, fed] = self.sizes.get(trigger.relation, 0.0) * (1.0 + walk.turns)
        return self._known[number, fed]

    def of(self, order: Sequence[Pass]) -> float:
        """Of all passes; each takes its rows once."""
        total, fed = 0.0, frozenset[int]()
        for one in order:
            fed |= frozenset(one.triggers)
            total += self.sizes.get(one.relation, 0.0) + sum(self.cost(number, fed) for number in one.triggers)
        return total

    def _filled(self, fed: frozenset[int]) -> set[tuple[str, str]]:
        """The views that have rows when triggers are fed, and their subsets by name, "" for the view itself."""
        filled = self._rows_in.setdefault(fed, set())
        before = -1
        while len(filled) > before:
            before = len(filled)
            for number in fed:
                _Walk(filled, self.rows, self.values).body(self.program.triggers[number].body, 1.0)
        return filled


def _in_order(costs: _Costs) -> list[int]:
    """The triggers in the order of least cost; of equal ones, that of the program comes first."""
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
    """Last is what costs least when all others are fed."""
    order: list[int] = []
    while left:
        last = min(left, key=lambda number: (costs.cost(number, left), -number))
        order.insert(0, last)
        left -= {last}
    return order


def _joined(costs: _Costs, order: Sequence[int]) -> list[Pass]:
    """A pass per trigger, those of one relation that follow each other in one where neither minds."""
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
    """What runs of a body while rows come, and none goes: ``filled`` takes the views that it adds to."""

    filled: set[tuple[str, str]]
    rows: Mapping[str, float]
    """Of a view."""
    values: float
    """That slices are asked for."""
    turns: float = 0.0
    _sums: set[str] = field(default_factory=set)
    """Aliases of sums that something is added to."""
    _views: dict[str, str] = field(default_factory=dict)
    """Views by the aliases of their rows."""

    def body(self, body: Body, times: float) -> None:
        """Statements that run so often for a row."""
        for statement in body:
            self.statement(statement, times)

    def statement(self, statement: Statement, times: float) -> None:
        match statement:
            case If(body=body) | Top(body=body):
                self.body(body, times)
            case Lookup(view=view, alias=alias, body=body, otherwise=otherwise):
                self._views[alias] = view
                if (view, "") in self.filled:
                    self.body(body, times)
                self.body(otherwise, times)
            case Loop(view=view, alias=alias, body=body, bound=bound, among=among):
                self._views[alias] = view
                if (view, among) in self.filled:
                    turns = times * self.rows[view] / (self.values if bound else 1.0)
                    self.turns += turns
                    self.body(body, turns)
            case Smaller(left=left, right=right):
                if {(left.view, left.among), (right.view, right.among)} <= self.filled:
                    self.statement(left, times)
            case Exists(view=view, among=among, body=body):
                if (view, among) in self.filled:
                    self.body(body, times)
            case Sum(alias=alias, body=body, then=then):
                self._sums.discard(alias)
                self.body(body, times)
                if alias in self._sums:
                    self.body(then, times)
            case Into(alias=alias):
                self._sums.add(alias)
            case Add(view=view, appear=appear, stay=stay, alias=alias):
                self._views[alias] = view
                self.filled.add((view, ""))
                # What a new key meets, it meets once: no more in all than there are rows.
                self.body(appear, min(times, 1.0) / self.values)
                self.body(stay, times)
            case Tally(amount=amount, body=body) if amount >= 0:
                self.body(body, times)
            case Enter(alias=alias, subset=subset, events=events):
                self.filled.add((self._views.get(alias, ""), subset))
                for event in events:
                    self.body(event.alone, min(times, 1.0) / self.values)
                    self.body(event.others, times)
            case Changed() | Leave():
                # No subscriber wants the change while a view is initialised.
                pass
            case Let() | Leap() | Tally() | Balance() | Perform() | Scan() | Clear() | Emit():
                pass
            case _:
                assert_never(statement)
