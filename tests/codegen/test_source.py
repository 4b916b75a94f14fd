"""Generated source: every name in it is defined, whatever a user calls columns and tables."""

from __future__ import annotations

import builtins
import symtable

import pytest

from freshviews.codegen.block import generate
from freshviews.codegen.imports import IMPORTABLE
from freshviews.codegen.writer import FUNCTIONS, RESERVED, Names
from freshviews.errors import PlanError
from freshviews.expr.nodes import Column
from freshviews.plan import STRATEGIES
from freshviews.query.block import Block, Output
from freshviews.query.query import Query
from freshviews.types import BIGINT
from tests.query.notation import query

QUERIES = (
    "Q(i, m) = state(i, on_0), part(on_0, m), find_2(m, n)",
    "Q(status) = on_0(status, i, take_1), load(status, part_0), rebalance(i, finish)",
    "Q() = part(key, find), find(find, load), load(load, key)",
    "Q(row, n) = out(row, m), changes(m, n), out(n, out)",
)


WISHES = ("i", "part", "part_0", "find", "find_2", "take", "on", "load", "class", "a b", "2", "")


@pytest.mark.parametrize("wish", WISHES)
def test_a_fresh_name_is_no_function_and_nothing_that_is_imported_or_reserved(wish: str) -> None:
    names = Names(RESERVED)
    made = [names.fresh(wish) for _ in range(5)]
    assert len(set(made)) == 5 and all(name.isidentifier() for name in made)
    for name in made:
        assert name not in RESERVED | IMPORTABLE and not FUNCTIONS.fullmatch(name)


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_name_is_defined(strategy: str, text: str) -> None:
    made = query(text)
    try:
        program = STRATEGIES[strategy].of_query(made)
    except PlanError:
        return
    for counted in (False, True):
        source, _ = generate(program, block_of(made), (), (), None, counted)
        assert not undefined(source)


def block_of(made: Query) -> Block:
    outputs = tuple(Output(v, Column(v, BIGINT)) for v in made.free)
    return Block("bag" if made.free else "global", made, outputs)


def undefined(source: str) -> set[str]:
    """Global names that functions of a module read and the module does not define."""
    module = symtable.symtable(source, "generated", "exec")
    defined = {*module.get_identifiers(), *dir(builtins)}
    read = {s.get_name() for function in module.get_children() for s in function.get_symbols() if s.is_global()}
    return read - defined
