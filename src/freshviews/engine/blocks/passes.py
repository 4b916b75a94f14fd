"""Backfills empty blocks in passes. A pass feeds all rows of one table to some of the block's triggers.

``plan.passes`` chooses the order of the passes. A table may have several passes.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

from freshviews.engine.blocks.runtime import BlockState
from freshviews.plan.passes import Pass, passes


def relations_to_feed(
    states: Sequence[BlockState], relations: Sequence[str], sizes: Mapping[str, float]
) -> tuple[list[str], Generator[str, None, None]]:
    """The relations to run, in order, some several times; and an iterator over them. Run all rows of a relation before
    asking it for the next.

    During a pass the states run only its triggers; afterwards, or when the iterator is closed, all triggers.

    ``sizes``: rows by relation.
    """
    orders = [passes(state.program, relations, sizes) for state in states]
    if not any(orders):
        return [*relations], (name for name in relations)
    order = [name for one in orders for name in (relations if one is None else [each.relation for each in one])]
    return order, _in_passes(states, orders, relations)


def _in_passes(
    states: Sequence[BlockState], orders: Sequence[Sequence[Pass] | None], relations: Sequence[str]
) -> Generator[str, None, None]:
    """Yield the relation of each pass, in which the states run only its triggers."""
    try:
        for state, order in zip(states, orders, strict=True):
            for other in states:
                other.choose(())
            if order is None:
                state.choose()
                yield from relations
            for one in order or ():
                state.choose(one.triggers)
                yield one.relation
    finally:
        for state in states:
            state.choose()
