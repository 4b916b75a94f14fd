"""Generated source defines every name that it uses, for any names of columns and tables."""

from __future__ import annotations

import builtins
import random
import re
import symtable
from dataclasses import replace

import pytest

from freshviews.codegen.compiled_block import generate
from freshviews.codegen.imports import IMPORTABLE
from freshviews.codegen.writer import FUNCTIONS, RESERVED, Module, Names
from freshviews.codegen.writing.bodies import begin
from freshviews.errors import PlanError
from freshviews.expr.nodes import Column
from freshviews.plan import STRATEGIES
from freshviews.program.payload import COUNT, MULTIPLICITY, ComponentOf, Value
from freshviews.program.statements import Clear
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
def test_a_fresh_name_differs_from_functions_imports_and_reserved_names(wish: str) -> None:
    names = Names(RESERVED)
    made = [names.fresh(wish) for _ in range(5)]
    assert len(set(made)) == 5 and all(name.isidentifier() for name in made)
    for name in made:
        assert name not in RESERVED | IMPORTABLE and not FUNCTIONS.fullmatch(name)


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_name_in_generated_source_is_defined(strategy: str, text: str) -> None:
    made = query(text)
    try:
        program = STRATEGIES[strategy].of_query(made)
    except PlanError:
        return
    for counted in (False, True):
        source = str(generate(program, block_of(made), (), (), None, counted))
        assert not undefined(source)


@pytest.mark.seeds(30)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_name_in_long_triggers_is_defined(strategy: str, seed: int) -> None:
    """Triggers over five or more atoms have functions for repeated bodies, which load what they read themselves. Found
    with ``crown`` over I(k, o, p), P(p, s), S(s), O(o, u), C(u) with all variables in the output."""
    made = tree_of_atoms(random.Random(seed))
    try:
        program = STRATEGIES[strategy].of_query(made)
    except PlanError:
        return
    source = str(generate(program, block_of(made), (), (), None))
    assert not undefined(source)


@pytest.mark.parametrize("count", [6, 12])
def test_an_addition_reuses_the_product_of_an_enclosing_addition(count: int) -> None:
    """Sources of chains of 60 joins had 11.8 MB: each of 60 additions in each of 60 triggers multiplied 60 factors."""
    atoms = ", ".join(f"R{i}(x{i}, x{i + 1})" for i in range(count))
    made = query(f"Q({', '.join(f'x{i}' for i in range(count + 1))}) = {atoms}")
    source = str(generate(STRATEGIES["view_tree"].of_query(made), block_of(made), (), (), None))
    times = [line.count("times(") for line in source.splitlines() if re.match(r" *(store|product)", line)]
    assert times and max(times) <= 2


def test_products_are_not_reused_after_their_views_changed() -> None:
    made = query("Q(a, b, c, d) = R(a, b), S(b, c), T(c, d)")
    program = STRATEGIES["view_tree"].of_query(made)
    products = re.compile(r"^ *product\w* = (.*)", re.MULTILINE)
    source = str(generate(program, block_of(made), (), (), None))
    read = {alias for product in products.findall(source) for alias in re.findall(r"load\((\w+),", product)}
    assert read
    everything = tuple(Clear(view.name) for view in program.stores)
    cleared = tuple(replace(trigger, body=(*trigger.body, *everything)) for trigger in program.triggers)
    source = str(generate(replace(program, triggers=cleared), block_of(made), (), (), None))
    assert not products.findall(source)


def test_rebinding_a_name_discards_the_products_that_contain_it() -> None:
    program = STRATEGIES["view_tree"].of_query(query("Q(a, c) = R(a, b), S(b, c)"))
    view = program.stores[0]
    start = begin(program, Module()).with_alias("r", view).with_alias("s", view)
    products = {(MULTIPLICITY, ComponentOf("r", COUNT)): "one", (Value("x"), ComponentOf("s", COUNT)): "other"}
    context = replace(start, products=products)
    assert set(context.with_alias("r", view).products.values()) == {"other"}
    assert set(context.with_variable("x").products.values()) == {"one"}
    assert context.with_alias("t", view).products == context.with_variable("y").products == products


def tree_of_atoms(chance: random.Random) -> Query:
    """Four to six atoms that a join tree connects, most of them with all variables in the output."""
    atoms = [["x0", "x1"]]
    count = 2
    for _ in range(chance.randint(3, 5)):
        above = chance.choice(atoms)
        key = chance.sample(above, chance.randint(1, min(2, len(above))))
        new = [f"x{count + i}" for i in range(chance.randint(0, 2))]
        count += len(new)
        atoms.append(key + new)
    relations = [chance.choice("RSTUVW") + str(len(variables)) for variables in atoms]
    variables = [f"x{i}" for i in range(count)]
    free = variables if chance.random() < 0.5 else [v for v in variables if chance.random() < 0.8]
    body = ", ".join(f"{name}({', '.join(one)})" for name, one in zip(relations, atoms, strict=True))
    return query(f"Q({', '.join(free)}) = {body}")


def block_of(made: Query) -> Block:
    outputs = tuple(Output(v, Column(v, BIGINT)) for v in made.free)
    return Block("bag" if made.free else "global", made, outputs)


def undefined(source: str) -> set[str]:
    """Global names that functions of a module read but the module does not define."""
    module = symtable.symtable(source, "generated", "exec")
    defined = {*module.get_identifiers(), *dir(builtins)}
    read = {s.get_name() for function in module.get_children() for s in function.get_symbols() if s.is_global()}
    return read - defined
