"""Rebalances an interpreted program: moves values between heavy and light parts (``program.heavy_light``).

Source: Kara, Ngo, Nikolic, Olteanu, Zhang (ICDT 2019), Figure 4, ONUPDATE.
"""

from __future__ import annotations

from collections.abc import Sequence

from freshviews.program.heavy_light import Balancing, Partition, thresholds
from freshviews.program.reference.payloads import Key, Scope
from freshviews.program.reference.tables import Run, Tables, enter


class Balances:
    """The threshold base N of a State, and the numbers of its major and minor rebalancings.

    ``low``: the fewest rows that the stores may have. It is 0 during a batch for which the base was set.

    Source: Kara, Ngo, Nikolic, Olteanu, Zhang: Counting Triangles under Updates in Worst-Case Optimal Time (ICDT 2019),
    Figure 4, ONUPDATE. Departure: if a batch of inserts could more than double the stored rows, a major rebalancing
    before the batch raises N for all its rows. If fewer than N / 4 rows are stored after the batch, a second major
    rebalancing follows.
    """

    def __init__(self, tables: Tables, run: Run) -> None:
        self.tables = tables
        self.run = run
        self.base = 1
        self.low = 0
        self.major = 0
        self.minor = 0

    @property
    def balancing(self) -> Balancing | None:
        return self.tables.program.balancing

    @property
    def size(self) -> int:
        """The rows of the stores."""
        assert self.balancing is not None
        return sum(len(self.tables.views[name]) for name in self.balancing.stores)

    def expect(self, multiplicities: Sequence[int]) -> None:
        """Before a batch: set the base for all its rows if these are inserts that may more than double the stores."""
        if self.balancing is None:
            return
        most = self.size + len(multiplicities)
        if most >= 2 * self.base and len(multiplicities) > 1 and all(m > 0 for m in multiplicities):
            self._rebalance(2 * most + 1)
            self.low = 0

    def settle(self) -> None:
        """After a batch: rebalance if the stores have fewer rows than a fourth of the base that was set for it."""
        if self.balancing is not None:
            self.low = self.base // 4
            if self.size < self.low:
                self._rebalance(2 * self.size + 1)

    def restore(self, view: str, key: Key) -> None:
        """Run a Balance after an update of the row ``key`` of a view: a major or a minor rebalancing, if one is due."""
        assert self.balancing is not None
        self.tables.steps += 1
        if self.size >= self.base:
            self._rebalance(2 * self.base)
        elif self.size < self.low:
            self._rebalance(max(self.base // 2 - 1, 1))
        else:
            for partition in self.balancing.partitions_of(view):
                self.tables.steps += 1
                value = tuple(key[i] for i in partition.by)
                _, rise, sink = thresholds(self.base, partition.epsilon)
                degree = self.degree(partition, value)
                heavy = value in self.tables.views[partition.heavy]
                if (degree < sink) if heavy else (degree >= rise):
                    self._move(partition, value, heavy)

    def degree(self, partition: Partition, value: Key) -> int:
        """The number of rows that have a value."""
        if not partition.by:
            return len(self.tables.views[partition.view])
        return len(self.tables.indexes[partition.view][partition.by].get(value, ()))

    def _move(self, partition: Partition, value: Key, heavy: bool) -> None:
        self.minor += 1
        self.run(partition.sink if heavy else partition.rise, Scope(dict(zip(partition.value, value, strict=True))))

    def _rebalance(self, base: int) -> None:
        assert self.balancing is not None
        self.base = base
        self.low = base // 4
        self.major += 1
        for name in self.balancing.auxiliary:
            self.tables.steps += len(self.tables.views[name])
            self.tables.clear(name)
        for partition in self.balancing.partitions:
            self._part(partition)
        self.run(self.balancing.recompute, Scope())

    def _part(self, partition: Partition) -> None:
        """Make each value heavy or light by the threshold itself, and mark the rows of the heavy ones."""
        tables = self.tables
        strict, _, _ = thresholds(self.base, partition.epsilon)
        heavy = {}
        if partition.subset:
            for index in tables.subsets[partition.view, partition.subset].values():
                index.clear()
        for key in tables.views[partition.view]:
            tables.steps += 1
            value = tuple(key[i] for i in partition.by)
            if self.degree(partition, value) >= strict:
                heavy[value] = (1,)
                if partition.subset:
                    enter(tables.subsets[partition.view, partition.subset], key)
        tables.clear(partition.heavy)
        tables.views[partition.heavy].update(heavy)
        for value in heavy:
            enter(tables.indexes[partition.heavy], value)
