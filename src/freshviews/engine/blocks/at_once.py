"""Backfills the empty block of a cyclic query in one step.

A temporary state stores all input rows and joins them once. The block then takes over the tables of this state. This
takes fewer steps than running the triggers for each row.
"""

from __future__ import annotations

from collections.abc import Mapping

from freshviews.codegen.compiled_block import compile_block
from freshviews.codegen.narrowing import with_narrow_sums
from freshviews.engine.blocks.host_columns import lift_program
from freshviews.engine.blocks.runtime import BlockState
from freshviews.plan.delta.first_order import update_exponents
from freshviews.plan.strategy import Plan
from freshviews.plan.trie import at_once
from freshviews.program.intersections import is_intersection
from freshviews.program.program import Program
from freshviews.program.statements import Loop, Smaller
from freshviews.program.structure import visit
from freshviews.query.block import Block
from freshviews.query.query import Query
from freshviews.types.dictionary import Dictionary

WORTH = 2e8
"""Least steps of deltas that justify compiling the join."""
TOGETHER = 8
"""Digests that an intersection compares at a time (``kernel.hash.index.position_of``)."""


def state_at_once(
    plan: Plan, block: Block, sizes: Mapping[str, float], dictionary: Dictionary, narrow: bool = False
) -> BlockState | None:
    """The state that stores and joins the rows instead of a block's own; None if deltas are as fast, or string
    functions are computed before the triggers. ``sizes``: rows by relation. ``narrow``: sums of doubles are narrow."""
    if not plan.by.stores_rows or plan.kind.acyclic or _steps(plan.program, block.query, sizes) < WORTH:
        return None
    program = at_once.plan(plan.program, block, sizes)
    if program is None or any(host.found for host in lift_program(plan.program)[1].values()):
        return None
    if narrow:
        program = with_narrow_sums(program)
    compiled = compile_block(program, block, (), (), None)
    width = len(block.free) + len(block.results) + 1
    return BlockState(program, compiled, width, dictionary, heir=plan.program)


def _steps(program: Program, query: Query, sizes: Mapping[str, float]) -> float:
    """Estimates the steps of all deltas: a loop that is not over a key has as many turns as the square root of the
    rows, and an intersection of two slices compares ``TOGETHER`` of them in a step."""
    rows = sum(sizes.get(name, 0.0) for name in {atom.relation for atom in query.atoms})
    steps = float(rows ** (1 + max(update_exponents(query).values()) / 2))
    return steps / TOGETHER if _only_intersects(program) else steps


def _only_intersects(program: Program) -> bool:
    """Whether all loops of the triggers are intersections of two slices and not nested, as for triangles."""
    for trigger in program.triggers:
        intersections = [s for s in visit(trigger.body) if isinstance(s, Smaller) and is_intersection(s)]
        loops = [s for s in visit(trigger.body) if isinstance(s, Loop)]
        if len(loops) != 2 * len(intersections):
            return False
        if any(isinstance(inner, Loop) for s in intersections for inner in visit(s.left.body)):
            return False
    return True


def hand_over(made: BlockState, state: BlockState) -> bool:
    """Join the rows of ``made``, move its tables to the empty ``state``, and close it. False if that fails, or if
    ``state`` has become wide meanwhile."""
    made.evaluate()
    try:
        made.enter_pending()
        same = made.program.views == state.program.views
        whole = same and not made.failed() and int(made.status[0]) == 0
    except MemoryError:
        whole = False
    if whole:
        state.exchange(made)
    made.close()
    return whole


def end_version(state: BlockState) -> bool:
    """End the version of a state that took rows; False if that fails. For a traced join from empty tables this is a
    leapfrog triejoin."""
    state.end_version()
    return not state.failed() and int(state.status[0]) == 0
