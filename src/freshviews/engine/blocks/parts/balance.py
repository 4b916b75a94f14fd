"""Stores the threshold of a block: it separates heavy values, with many rows, from light values, with few.

The threshold is N^eps. The base N follows the number of rows. The exponent eps is fixed, or ``exponent`` chooses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from freshviews.codegen.layout import balance_word
from freshviews.engine.blocks.parts.exponent import Degrees, choose
from freshviews.engine.blocks.parts.part import Owner, Part
from freshviews.engine.codes.words import address, words_in
from freshviews.kernel.hash import heavy_light as balances
from freshviews.kernel.hash import index as indexes
from freshviews.kernel.hash import table
from freshviews.kernel.memory import mem
from freshviews.program.heavy_light import HALVES, Balancing, Partition


class Balance(Part):
    """The balance of one state (``kernel.hash.heavy_light``)."""

    def __init__(self, balancing: Balancing, owner: Owner) -> None:
        self._balancing = balancing
        count = len(balancing.partitions)
        self._words = np.zeros(balances.FIRST_PARTITION + count * balances.PARTITION_WORDS, np.int64)
        self._places = range(balances.FIRST_PARTITION, len(self._words), balances.PARTITION_WORDS)
        """Where the words of each partition begin."""
        self._updates = self._read = 0
        """Updates since an exponent was chosen, and the rows that had been read by then."""
        self.clear()
        owner.words[balance_word(owner.program)] = address(self._words)

    def clear(self) -> None:
        self._words[:] = 0
        for at, partition in zip(self._places, self._balancing.partitions, strict=True):
            self._words[at + balances.EPSILON] = mem.bits(partition.epsilon)
        balances.set_base(address(self._words), 1, len(self._places), *HALVES)
        self._look()

    def _look(self) -> None:
        """Note the exponents in use, those of the last major rebalancing."""
        self._looked = int(self._words[balances.MAJOR])
        self._exponents = [mem.f64(int(self._words[at + balances.EPSILON])) for at in self._places]

    def after(self, owner: Owner, n: int) -> None:
        """After a major rebalancing, choose the exponent for the next one."""
        balancing = self._balancing
        self._updates += n
        if not balancing.choices or self._words[balances.MAJOR] == self._looked:
            return
        self._look()
        reads = (owner.rows_read - self._read) / max(self._updates, 1) if balancing.reads_heavy else 0.0
        degrees = [self._degrees(owner, partition) for partition in balancing.partitions if partition.by]
        best = choose(degrees, int(self._words[balances.BASE]), balancing.choices, self._exponents[0], reads)
        for at in self._places:
            self._words[at + balances.EPSILON] = mem.bits(best)
        self._updates, self._read = 0, owner.rows_read

    def changes_less(self, owner: Owner, n: int) -> bool:
        """Whether any ``n`` updates leave the stores within the bounds of a major rebalancing."""
        handles = owner.handles()
        rows = sum(int(mem.load(handles[view], table.LIVE)) for view in self._balancing.stores)
        return bool(self._words[balances.FEWEST] <= rows - n and rows + n < self._words[balances.BASE])

    def _index(self, owner: Owner, partition: Partition) -> int:
        """The index by the values of a partition."""
        place = owner.program.view(partition.view).place_of_index(partition.by)
        return int(mem.load(mem.load(owner.handles()[partition.view], table.INDEX_LIST), place))

    def _degrees(self, owner: Owner, partition: Partition) -> Degrees:
        """The number of rows of each value of a partition, with zeros for free groups of the index."""
        index = self._index(owner, partition)
        key = mem.load(index, indexes.COUNT)
        groups = words_in(mem.load(index, indexes.GROUPS), mem.load(index, indexes.USED), key + indexes.GROUP_EXTRA)
        return groups[:, key + indexes.ROWS_COUNT].copy()

    def described(self, owner: Owner) -> list[str]:
        base, _, major, minor = map(int, self._words[: balances.FIRST_PARTITION])
        lines = [f"balance: N = {base:,}; {major:,} major and {minor:,} minor rebalancings"]
        handles = owner.handles()
        for at, epsilon, one in zip(self._places, self._exponents, self._balancing.partitions, strict=True):
            rows, values = (mem.load(handles[view], table.LIVE) for view in (one.view, one.heavy))
            # In a partition without a value, all rows belong to each heavy value.
            heavy = rows * values
            if one.by:
                heavy = balances.rows_of_values(self._index(owner, one), handles[one.heavy])
            threshold = int(self._words[at + balances.STRICT])
            lines.append(
                f"    {one.heavy}: N^{epsilon:g} = {threshold:,}; {values:,} heavy values, "
                f"{heavy:,} of {rows:,} rows of {one.view}"
            )
        return ["\n".join(lines)]

    def image(self) -> dict[str, Any]:
        return {"balance": self._words.tolist()}

    def restore(self, owner: Owner, image: Mapping[str, Any]) -> None:
        words = image.get("balance", ())
        self._words[: len(words)] = words
        self._look()


def balance_of(owner: Owner) -> Part | None:
    """The balance of a program with heavy and light parts."""
    balancing = owner.program.balancing
    return None if balancing is None else Balance(balancing, owner)
