"""Repeated statements of long triggers become functions, with the same rows, changes and steps."""

from __future__ import annotations

import builtins
import random
import re
import symtable
from collections import Counter

import numpy as np
import pytest

from freshviews.codegen.compiled_block import CompiledBlock, compile_block
from freshviews.codegen.layout import STATUS_STEPS
from freshviews.codegen.writing import parts as written
from freshviews.engine.blocks.runtime import BlockState
from freshviews.engine.codes.code_batch import address_of
from freshviews.expr.nodes import Column
from freshviews.plan.crown import propagation as crown
from freshviews.program.program import Program
from freshviews.query.block import Block, Output
from freshviews.query.query import Query
from freshviews.types import BIGINT
from freshviews.types.dictionary import Dictionary
from tests.query.notation import query

pytestmark = pytest.mark.compiled(0)

LOLLIPOP = query("Q(a, d) = E(a, b), E(b, c), E(c, a), F(a, d)")


def compiled(made: Query, program: Program) -> CompiledBlock:
    outputs = tuple(Output(v, Column(v, BIGINT)) for v in made.free)
    return compile_block(program, Block("bag", made, outputs), (), (), None, counted=True)


def lollipop() -> Program:
    program = crown.plan_enumerated(LOLLIPOP, distinct=True)
    assert program is not None
    return program


def followed(program: Program, block: CompiledBlock) -> tuple[list[int], list[Counter[tuple[int, ...]]]]:
    """The steps and the change of each update."""
    state = BlockState(program, block, len(LOLLIPOP.free) + 1, Dictionary())
    state.want_changes(True)
    chance = random.Random(3)
    there: list[tuple[str, int, int]] = []
    steps, changes = [], []
    for _ in range(400):
        if there and chance.random() < 0.4:
            update, m = there.pop(chance.randrange(len(there))), -1
        else:
            update, m = (chance.choice("EEF"), chance.randrange(6), chance.randrange(6)), 1
            there.append(update)
        columns = {f"c{i}": np.array([word]) for i, word in enumerate(update[1:])}
        amount = np.array([m])
        before = int(state.status[STATUS_STEPS])
        state.run(update[0], {name: address_of(column) for name, column in columns.items()}, address_of(amount), 1)
        steps.append(int(state.status[STATUS_STEPS]) - before)
        changes.append(Counter())
        for *key, multiplicity in state.take_changes().tolist():
            changes[-1][tuple(key)] += multiplicity
    state.close()
    return steps, changes


def test_repeated_statements_become_one_function_with_the_same_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    program = lollipop()
    short = compiled(LOLLIPOP, program)
    parts = re.findall(r"^def (part_\d+)\(", str(short.source), re.M)
    assert parts and all(len(re.findall(rf"= {part}\(", str(short.source))) >= 2 for part in parts)
    monkeypatch.setattr(written, "_SHORT", 10**6)
    whole = compiled(LOLLIPOP, program)
    assert "part_" not in str(whole.source) and len(str(whole.source)) > 1.5 * len(str(short.source))
    ours, theirs = followed(program, short), followed(program, whole)
    assert ours == theirs
    assert sum(ours[0]) > 400 and any(ours[1])


def test_short_triggers_are_written_without_functions() -> None:
    program = crown.plan_enumerated(query("Q(a, b, c) = R(a, b), S(b, c)"))
    assert program is not None
    assert not written.repeated_in(program)


STAR = query("Q(k, o, p, s, u) = I(k, o, p), P(p, s), S(s), O(o, u), C(u)")


def test_a_function_loads_the_tables_of_the_rows_in_its_arguments() -> None:
    """A statement that marks a row as live reads no view itself, but needs the row's table."""
    program = crown.plan_enumerated(STAR)
    assert program is not None
    source = str(compiled(STAR, program).source)
    assert "part_" in source
    module = symtable.symtable(source, "generated", "exec")
    defined = {*module.get_identifiers(), *dir(builtins)}
    for function in module.get_children():
        missing = [s.get_name() for s in function.get_symbols() if s.is_global() and s.get_name() not in defined]
        assert not missing, f"{function.get_name()} reads {missing}"
