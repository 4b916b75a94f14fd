"""A new kind of statement is defined in four places: its class, meaning, text and code. Walks need no entry for it."""

from __future__ import annotations

import inspect
from collections import Counter
from dataclasses import dataclass
from types import ModuleType
from typing import Annotated, Any, get_args

import numpy as np
import pytest

from freshviews.codegen.compiled_block import compile_block
from freshviews.codegen.writing import bodies as code
from freshviews.codegen.writing.context import Context
from freshviews.engine.blocks.runtime import BlockState
from freshviews.engine.codes.code_batch import address_of
from freshviews.expr.nodes import Column
from freshviews.plan.costs.cost import cost_of
from freshviews.plan.costs.degrees import ASSUMED_ROWS, Assumed
from freshviews.program import printer, statements
from freshviews.program.payload import MULTIPLICITY, Component, Monomial, hashed_once
from freshviews.program.program import Parameter, Program, Trigger
from freshviews.program.reference import interpreter
from freshviews.program.reference.payloads import Scope
from freshviews.program.results import Held
from freshviews.program.roles import Columns, Often, Role, Runs
from freshviews.program.statements import Add, Body, ReadVariable, ReadView, Statement
from freshviews.program.views import View
from freshviews.query.block import Block, Output
from freshviews.types import BIGINT
from freshviews.types.dictionary import Dictionary
from tests.query.notation import query


@hashed_once
@dataclass(frozen=True)
class Above:
    """Runs the body for each row of a view of one column, without indexes, whose value is above a variable."""

    view: ReadView
    least: ReadVariable
    value: Annotated[str, Role.BINDS, Columns()]
    body: Annotated[Body, Runs(Often.EACH)]


class State(interpreter.State):
    def run(self, body: tuple[Any, ...], scope: Scope) -> None:
        for one in body:
            if not isinstance(one, Above):
                super().run((one,), scope)
                continue
            for (value,) in self.views[one.view]:
                self.steps += 1
                if value > scope.variables[one.least]:
                    scope.variables[one.value] = value
                    self.run(one.body, scope)


def write_above(context: Context, one: Above) -> None:
    table, at, row = context.table(one.view), context.fresh("at"), context.fresh("row")
    with context.block(f"for {at} in range(load({table}, USED)):"):
        context.step()
        context.line(f"{row} = load({table}, ROWS) + {at} * 8 * load({table}, WIDTH)")
        value = context.variable(one.value)
        context.line(f"{value} = load({row}, 0)")
        with context.block(f"if not is_zero({table}, {row}) and {value} > {context.variable(one.least)}:"):
            context.body(one.body)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the text and the code of the new kind."""
    print_other, write_other = printer._Printer.statement, code.write_statement

    def print_one(self: Any, one: Any, rows: Any) -> None:
        if isinstance(one, Above):
            self.block(f"for {one.value} > {one.least} in {one.view}:", one.body, rows)
        else:
            print_other(self, one, rows)

    def write_one(one: Any, context: Context, before: Statement | None = None) -> Context:
        if not isinstance(one, Above):
            return write_other(one, context, before)
        write_above(context, one)
        return context

    monkeypatch.setattr(printer._Printer, "statement", print_one)
    monkeypatch.setattr(code, "write_statement", write_one)


def program() -> Program:
    """A program for Q(c), the values of S above those of R."""
    count, m = (Component("count", "integer"),), (Monomial((MULTIPLICITY,)),)
    r, s = (Parameter(name, Column(name, BIGINT, False)) for name in "ac")
    above: Any = Above("S", "a", "c", (Add("Q", ("c",), ("count",), m),))
    triggers = (Trigger("R", (r,), (), (above,)), Trigger("S", (s,), (), (Add("S", ("c",), ("count",), m),)))
    views = (View("S", ("c",), count, ()), View("Q", ("c",), count, (), journal=True))
    return Program("P", ("c",), views, triggers, Held("Q"))


@pytest.mark.plain_python
@pytest.mark.compiled(1)
@pytest.mark.usefixtures("told")
def test_a_new_kind_of_statement_runs_in_generated_code() -> None:
    made = program()
    block = Block("bag", query("Q(c) = R(a), S(c)"), (Output("c", Column("c", BIGINT)),))
    engine = BlockState(made, compile_block(made, block, (), (), None, counted=True), 2, Dictionary())
    state = State(made)
    engine.want_changes(True)
    for relation, column, values in (("S", "c", [3, 5, 9]), ("R", "a", [4, 1]), ("S", "c", [6]), ("R", "a", [5])):
        words, amounts = np.array(values), np.ones(len(values), np.int64)
        engine.run(relation, {column: address_of(words)}, address_of(amounts), len(values))
        state.apply(relation, [({column: value}, 1) for value in values])
        found: Counter[tuple[int, ...]] = Counter()
        for *key, multiplicity in engine.take_changes().tolist():
            found[tuple(key)] += multiplicity
        assert {key: (m,) for key, m in found.items()} == state.change()
    assert state.views["Q"] == {(3,): (1,), (5,): (2,), (6,): (1,), (9,): (3,)}
    engine.close()


@pytest.mark.usefixtures("told")
def test_a_new_kind_of_statement_is_printed_and_has_a_cost() -> None:
    made = program()
    assert "for c > a in S:\n        Q[c] += m\n" in printer.print_program(made)
    cost = cost_of(made, 0, Assumed(made, {}))
    assert cost.walked == cost.writes == ASSUMED_ROWS


def test_four_modules_handle_every_kind_of_statement() -> None:
    kinds = [kind.__name__ for kind in get_args(Statement)]
    rooms: list[ModuleType] = [statements, interpreter, printer, code]
    for room in rooms:
        text = inspect.getsource(room)
        assert all(f"{kind}(" in text or f"class {kind}:" in text for kind in kinds), room.__name__
