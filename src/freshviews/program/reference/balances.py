"""Rebalancing in the interpreter: what a Balance, and a batch as a whole, does to the parts of a State.

Source: Kara, Ngo, Nikolic, Olteanu, Zhang: Counting Triangles under Updates in Worst-Case Optimal Time (ICDT 2019),
Figure 4, ONUPDATE. Beyond it: a batch of inserts that may more than double the stores sets N for all of its rows
before the first of them, as one major rebalancing; where fewer came to be than a fourth of that, a second one follows
the last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from freshviews.program.reference.payloads import Key, Payload, Scope

if TYPE_CHECKING:
    from freshviews.program.parts import Balancing, Partition
    from freshviews.program.reference.interpreter import State


def thresholds(base: int, epsilon: float) -> tuple[int, int, int]:
    """The degrees from which a value is heavy: strictly, for one that was light, for one that was heavy."""
    threshold = float(base) ** epsilon
    return math.ceil(threshold), math.ceil(1.5 * threshold), math.ceil(0.5 * threshold)


class Balances:
    """The threshold base N of a State and how often it was rebalanced.

    ``low``: the fewest rows that the stores may have; 0 while a batch grows into the base that was set for it.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.base = 1
        self.low = 0
        self.major = 0
        self.minor = 0

    @property
    def balancing(self) -> Balancing | None:
        return self.state.program.balancing

    @property
    def size(self) -> int:
        """The rows of the stores."""
        assert self.balancing is not None
        return sum(len(self.state.views[name]) for name in self.balancing.stores)

    def expect(self, multiplicities: Sequence[int]) -> None:
        """Before a batch of updates: set the base for all of them where they may more than double it."""
        if self.balancing is None:
            return
        most = self.size + len(multiplicities)
        if most >= 2 * self.base and len(multiplicities) > 1 and all(m > 0 for m in multiplicities):
            self._rebalance(2 * most + 1)
            self.low = 0

    def settle(self) -> None:
        """After a batch: fewer rows than a fourth of the base that was set for it are too few."""
        if self.balancing is not None:
            self.low = self.base // 4
            if self.size < self.low:
                self._rebalance(2 * self.size + 1)

    def restore(self, view: str, key: Key) -> None:
        """What a Balance does."""
        assert self.balancing is not None
        self.state.steps += 1
        if self.size >= self.base:
            self._rebalance(2 * self.base)
        elif self.size < self.low:
            self._rebalance(max(self.base // 2 - 1, 1))
        else:
            for partition in self.balancing.partitions_of(view):
                self.state.steps += 1
                value = tuple(key[i] for i in partition.by)
                _, rise, sink = thresholds(self.base, partition.epsilon)
                degree = self.degree(partition, value)
                heavy = value in self.state.views[partition.heavy]
                if (degree < sink) if heavy else (degree >= rise):
                    self._move(partition, value, heavy)

    def degree(self, partition: Partition, value: Key) -> int:
        """The number of rows that have a value."""
        if not partition.by:
            return len(self.state.views[partition.view])
        return len(self.state.indexes[partition.view][partition.by].get(value, ()))

    def _move(self, partition: Partition, value: Key, heavy: bool) -> None:
        self.minor += 1
        scope = Scope(dict(zip(partition.value, value, strict=True)), {}, _no_row)
        self.state.run(partition.sink if heavy else partition.rise, scope)

    def _rebalance(self, base: int) -> None:
        assert self.balancing is not None
        self.base = base
        self.low = base // 4
        self.major += 1
        for name in self.balancing.auxiliary:
            self.state.steps += len(self.state.views[name])
            self.state.clear(name)
        for partition in self.balancing.partitions:
            self._part(partition)
        self.state.run(self.balancing.recompute, Scope({}, {}, _no_row))

    def _part(self, partition: Partition) -> None:
        """Part a view strictly."""
        state = self.state
        strict, _, _ = thresholds(self.base, partition.epsilon)
        heavy = {}
        if partition.subset:
            for index in state.subsets[partition.view, partition.subset].values():
                index.clear()
        for key in state.views[partition.view]:
            state.steps += 1
            value = tuple(key[i] for i in partition.by)
            if self.degree(partition, value) >= strict:
                heavy[value] = (1,)
                if partition.subset:
                    for at, index in state.subsets[partition.view, partition.subset].items():
                        index[tuple(key[i] for i in at)][key] = None
        state.clear(partition.heavy)
        state.views[partition.heavy].update(heavy)
        for at, index in state.indexes[partition.heavy].items():
            for value in heavy:
                index[tuple(value[i] for i in at)][value] = None


def _no_row(row: Key, payload: Payload) -> None:
    """Rebalancing emits nothing: the result does not depend on the parts."""
