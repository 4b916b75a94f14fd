"""Optional and negated atoms in generated code have the changes and the steps of the interpreter."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from freshviews.codegen.compiled_block import compile_block
from freshviews.codegen.layout import STATUS_STEPS
from freshviews.engine.blocks.runtime import BlockState
from freshviews.engine.codes.code_batch import address_of
from freshviews.errors import PlanError
from freshviews.expr.nodes import Column
from freshviews.program.reference.interpreter import State
from freshviews.query.block import Block, Output
from freshviews.types import BIGINT
from freshviews.types.dictionary import Dictionary
from tests.plan.streams import Stream, relations_of
from tests.plan.test_optional import CASES, STRATEGIES

pytestmark = [pytest.mark.plain_python, pytest.mark.compiled(40)]


@pytest.mark.parametrize("case", [name for name, one in CASES.items() if len(one.aggregates) == 1 and one.free])
@pytest.mark.parametrize("name", [name for name in STRATEGIES if "trie_join" not in name])
def test_generated_code_for_optional_atoms_agrees_with_the_interpreter(name: str, case: str) -> None:
    made = CASES[case]
    try:
        program = STRATEGIES[name](made)
    except PlanError as refusal:
        pytest.skip(str(refusal))
    outputs = tuple(Output(v, Column(v, BIGINT)) for v in made.free)
    block = compile_block(program, Block("bag", made, outputs), (), (), None, counted=True)
    engine, state = BlockState(program, block, len(made.free) + 1, Dictionary()), State(program)
    engine.want_changes(True)
    for batch in Stream(relations_of(made), 3, signed=False).batches(20):
        columns = {c: np.array([row[i] for row, _ in batch.updates]) for i, c in enumerate(batch.columns)}
        amounts = np.array([m for _, m in batch.updates])
        before = int(engine.status[STATUS_STEPS]), state.steps
        places = {name: address_of(column) for name, column in columns.items()}
        engine.run(batch.relation, places, address_of(amounts), len(amounts))
        state.apply(batch.relation, batch.rows())
        # Generated code counts a found slice as a step, and deferred rows as steps when they are flushed.
        assert int(engine.status[STATUS_STEPS]) - before[0] <= 3 * (state.steps - before[1])
        found: Counter[tuple[int, ...]] = Counter()
        for *key, multiplicity in engine.take_changes().tolist():
            found[tuple(key)] += multiplicity
        assert {key: (m,) for key, m in found.items() if m} == state.change()
    engine.close()
