"""Backfills empty blocks in several passes over their tables; each pass runs some of the triggers (``plan.passes``)."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

from freshviews.engine.blocks.runtime import BlockState
from freshviews.plan.passes import passes


def relations_to_feed(
    states: Sequence[BlockState], relations: Sequence[str], sizes: Mapping[str, float]
) -> Generator[str, None, None]:
    """Yield the relations to run, in order, some several times. Run all rows of a relation before asking for the next.

    During a pass the states run only its triggers; afterwards, or when the iterator is closed, all triggers.

    ``sizes``: rows by relation.
    """
    orders = [passes(state.program, relations, sizes) for state in states]
    if not any(orders):
        yield from relations
        return
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
