"""The meaning of each statement of the trigger language."""

from __future__ import annotations

from dataclasses import replace

import pytest

from freshviews.expr.nodes import Call, Column, Expr, Literal
from freshviews.program.payload import MULTIPLICITY, Component, ComponentOf, Monomial, Value
from freshviews.program.program import Parameter, Program, Trigger
from freshviews.program.reference.interpreter import State
from freshviews.program.reference.scalars import encode
from freshviews.program.results import Enumerated, Held
from freshviews.program.statements import (
    Add,
    Bound,
    Changed,
    Emit,
    If,
    Into,
    Let,
    Lookup,
    Loop,
    Range,
    RangeLoop,
    RangeSum,
    Scan,
    Smaller,
    Statement,
    Sum,
    Top,
)
from freshviews.program.views import Order, View
from freshviews.ring import REAL
from freshviews.types import BIGINT, BOOLEAN, DOUBLE, NULL

COUNT = (Component("count", "integer"),)
M = (Monomial((MULTIPLICITY,)),)
ONE = (Monomial(()),)


def column(name: str) -> Column:
    return Column(name, BIGINT, False)


def less(a: str, b: str) -> Expr:
    return Call("lt", (column(a), column(b)), BOOLEAN, False)


def program(
    *body: Statement, views: tuple[View, ...] = (), output: str | None = None, filters: tuple[Expr, ...] = ()
) -> Program:
    """A program whose trigger is for updates of R(a, b)."""
    result = Enumerated(()) if output is None else Held(output)
    parameters = (Parameter("a", column("a")), Parameter("b", column("b")))
    return Program("P", ("a",), views, (Trigger("R", parameters, filters, body),), result)


def view(name: str, *key: str, indexes: tuple[tuple[int, ...], ...] = (), journal: bool = False) -> View:
    return View(name, key, COUNT, indexes, journal=journal)


def run(made: Program, *updates: tuple[int, int, int]) -> State:
    """A state after updates (a, b, multiplicity) of R, one batch each."""
    state = State(made)
    for a, b, m in updates:
        state.apply("R", [({"a": a, "b": b}, m)])
    return state


def test_a_payload_of_zero_removes_the_row() -> None:
    made = program(Add("V", ("a",), ("count",), M), views=(view("V", "a"),))
    state = run(made, (1, 0, 2), (1, 5, -2), (2, 0, -1))
    assert state.views["V"] == {(2,): (-1,)}


def test_appear_and_vanish_bodies_run_if_the_presence_of_a_row_changes() -> None:
    add = Add(
        "V",
        ("a",),
        ("count",),
        M,
        appear=(Add("W", ("a",), ("count",), ONE),),
        vanish=(Add("X", ("a",), ("count",), ONE),),
    )
    made = program(add, views=(view("V", "a"), view("W", "a"), view("X", "a")))
    state = run(made, (1, 0, 1), (1, 0, 1), (1, 0, -3), (1, 0, 1), (2, 0, 1), (2, 0, 0), (2, 0, -1))
    assert state.views["W"] == {(1,): (1,), (2,): (1,)}
    assert state.views["X"] == {(1,): (1,), (2,): (1,)}


def test_a_trigger_runs_for_rows_that_pass_every_filter() -> None:
    made = program(Add("V", ("a",), ("count",), M), views=(view("V", "a"),), filters=(less("a", "b"),))
    assert run(made, (1, 2, 1), (2, 1, 1)).views["V"] == {(1,): (1,)}


def test_an_update_of_a_relation_without_a_trigger_does_nothing() -> None:
    state = State(program(Add("V", ("a",), ("count",), M), views=(view("V", "a"),)))
    state.apply("S", [({"a": 1, "b": 1}, 1)])
    assert state.views["V"] == {}


def test_the_variable_of_a_let_statement_is_bound_until_the_end_of_its_body() -> None:
    double = Call("mul_int", (column("a"), Literal(2, BIGINT)), BIGINT, False)
    body = (Let("c", double), If(less("b", "c"), (Add("V", ("c",), ("count",), M),)))
    assert run(program(*body, views=(view("V", "c"),)), (2, 1, 1), (1, 7, 1)).views["V"] == {(4,): (1,)}


def stored(*body: Statement) -> Program:
    """Runs ``body``, then adds the update to R."""
    r = view("R", "a", "b", indexes=((1,), (0,)))
    store = Add("R", ("a", "b"), ("count",), M)
    return program(*body, store, views=(r, view("V", "x")))


def test_a_loop_visits_the_rows_that_agree_on_bound_variables() -> None:
    payload = (Monomial((MULTIPLICITY, ComponentOf("r", "count"))),)
    loop = Loop("R", ("x", "b"), (1,), "r", (Add("V", ("x",), ("count",), payload),))
    state = run(stored(loop), (1, 7, 2), (2, 7, 3), (3, 8, 1), (9, 7, 1))
    assert state.views["V"] == {(1,): (2 * 3 + 2,), (2,): (3,)}


def test_a_loop_without_bound_variables_scans_the_whole_view() -> None:
    loop = Loop("R", ("x", "y"), (), "r", (Add("V", ("x",), ("count",), ONE),))
    assert run(stored(loop), (1, 7, 1), (2, 8, 1), (3, 9, 1)).views["V"] == {(1,): (2,), (2,): (1,)}


def test_a_loop_cannot_add_rows_to_its_own_view() -> None:
    loop = Loop("R", ("x", "y"), (), "r", (Add("R", ("b", "x"), ("count",), ONE),))
    with pytest.raises(RuntimeError):
        run(stored(loop), (1, 7, 1), (2, 8, 1))


def test_a_loop_needs_its_index_to_be_declared() -> None:
    loop = Loop("R", ("a", "b"), (0, 1), "r", ())
    with pytest.raises(KeyError):
        run(stored(loop), (1, 7, 1))


def test_a_lookup_runs_its_body_if_the_key_is_present() -> None:
    tenfold = (Monomial((ComponentOf("r", "count"),), 10),)
    found = Lookup("R", ("b", "a"), "r", (Add("V", ("a",), ("count",), tenfold),))
    assert run(stored(found), (1, 2, 5), (2, 1, 1), (3, 3, 1)).views["V"] == {(2,): (50,)}


def test_the_statement_smaller_loops_over_the_slice_with_fewer_rows() -> None:
    left = Loop("R", ("x", "b"), (1,), "r", (Add("V", ("a",), ("count",), ONE),))
    right = Loop("R", ("a", "x"), (0,), "r", (Add("V", ("b",), ("count",), ONE),))
    body = (Smaller(left, right),)
    assert run(stored(*body), (1, 7, 1), (2, 7, 1)).views["V"] == {}
    assert run(stored(*body), (1, 7, 1), (1, 8, 1), (8, 8, 1), (1, 8, 1)).views["V"] == {(1,): (2,)}
    assert run(stored(*body), (1, 7, 1), (2, 7, 1), (1, 7, 1)).views["V"] == {(7,): (1,)}


def test_the_statements_after_a_sum_are_skipped_if_the_sum_is_zero() -> None:
    into = Into("u", (Monomial((ComponentOf("r", "count"),)),))
    total = (Monomial((ComponentOf("u", "count"),)),)
    then = (Add("V", ("b",), ("count",), total), Add("V", ("a",), ("count",), ONE))
    body = Sum("u", COUNT, (Loop("R", ("x", "b"), (1,), "r", (into,)),), then)
    state = run(stored(body), (1, 70, 1), (2, 70, -1), (3, 70, 4), (4, 70, 1))
    assert state.views["V"] == {(2,): (1,), (70,): (1 + 4,), (4,): (1,)}


def test_a_row_is_present_while_any_component_is_not_zero() -> None:
    components = (Component("count", "integer"), Component("x", "integer"), Component("y", "real"))
    payload = (*M, Monomial((MULTIPLICITY, Value("a"))), Monomial((MULTIPLICITY, Value("b", "real")), 2))
    both = View("V", (), components)
    made = program(Add("V", (), ("count", "x", "y"), payload), views=(both,))
    state = run(made, (3, double(0.5), 2), (4, double(0.5), -2))
    assert state.views["V"] == {(): (0, -2, REAL.zero)}
    state.apply("R", [({"a": -2, "b": double(0.5)}, -1)])
    assert state.views["V"] == {(): (-1, 0, REAL.negate(REAL.lift(double(1.0))))}


def double(value: float) -> int:
    return encode(value, DOUBLE)


def test_an_add_statement_changes_only_the_components_that_it_names() -> None:
    components = (Component("count", "integer"), Component("x", "integer"))
    made = program(Add("V", (), ("x",), (Monomial((Value("a"),)),)), views=(View("V", (), components),))
    assert run(made, (3, 0, 1), (4, 0, 1)).views["V"] == {(): (0, 7)}


@pytest.mark.parametrize(("kind", "first", "second"), [("min", 3, 5), ("max", 8, 5)])
def test_a_scan_gives_the_first_or_last_value(
    kind: str, first: int, second: int
) -> None:
    source = View("D", ("a", "b"), COUNT, ordered=(Order(BIGINT),))
    target = View("V", ("a",), (Component("least", "integer"),))
    extreme = Scan("V", ("a",), "least", "D", ("a",), kind)
    made = program(Add("D", ("a", "b"), ("count",), M, (extreme,), (extreme,)), views=(source, target))
    state = run(made, (1, 3, 1), (1, 5, 2), (1, 8, 1), (2, 4, 1))
    assert state.views["V"] == {(1,): (first,), (2,): (4,)}
    state.apply("R", [({"a": 1, "b": first}, -1), ({"a": 1, "b": 11 - first}, -1), ({"a": 2, "b": 4}, -1)])
    assert state.views["V"] == {(1,): (second,)}


@pytest.mark.parametrize(("kind", "values"), [("bit_and", (4, 12, 0)), ("bit_or", (15, 12, 0))])
def test_a_fold_combines_the_last_key_words(
    kind: str, values: tuple[int, ...]
) -> None:
    source = View("D", ("a", "b"), COUNT, ordered=(Order(BIGINT),), folds=(kind,))
    target = View("V", ("a",), (Component("bits", "integer"), Component("rows", "integer")))
    scan = Scan("V", ("a",), "bits", "D", ("a",), kind)
    counted = Add("V", ("a",), ("rows",), M)
    made = program(Add("D", ("a", "b"), ("count",), M, (scan, counted), (scan, counted)), views=(source, target))
    state = run(made, (1, 7, 1), (1, 12, 2))
    found = []
    for gone in (0, 7, 12):
        state.apply("R", [({"a": 1, "b": gone}, -2 if gone == 12 else -1)] if gone else [])
        found.append(state.views["V"].get((1,), (0,))[0])
    assert tuple(found) == values


@pytest.mark.parametrize(("kind", "values"), [("min", (3, 5, 8)), ("max", (9, 9, 8)), ("bit_or", (15, 13, 8))])
def test_a_scan_combines_the_folds_of_all_groups_with_a_prefix(kind: str, values: tuple[int, ...]) -> None:
    source = View("D", ("a", "b", "c"), COUNT, ordered=(Order(BIGINT),), folds=(kind,))
    target = View("V", ("a",), (Component("value", "integer"),))
    scan = Scan("V", ("a",), "value", "D", ("a",), kind)
    parameters = tuple(Parameter(name, Column(name, BIGINT)) for name in ("a", "b", "c"))
    add = Add("D", ("a", "b", "c"), ("count",), M, (scan,), (scan,))
    made = replace(program(views=(source, target)), triggers=(Trigger("R", parameters, (), (add,)),))
    state = State(made)
    rows = [{"a": 1, "b": b, "c": c} for b, c in ((1, 5), (1, 3), (2, 9), (2, 8), (3, 8), (4, 1))]
    state.apply("R", [(row, 1) for row in rows[:5]] + [({**rows[5], "a": 2}, 1)])
    found = [state.views["V"][1,][0]]
    for gone in ((1,), (0, 2)):
        state.apply("R", [(rows[i], -1) for i in gone])
        found.append(state.views["V"][1,][0])
    assert tuple(found) == values


@pytest.mark.parametrize(("kind", "value"), [("min_by", NULL), ("max_by", 7)])
def test_a_scan_of_pairs_returns_the_value_of_the_least_or_greatest_pair(kind: str, value: int) -> None:
    source = View("D", ("a", "b"), COUNT, ordered=(Order(BIGINT), Order(BIGINT)))
    target = View("V", (), (Component("value", "integer"),))
    scan = Scan("V", (), "value", "D", (), kind)
    made = program(Add("D", ("a", "b"), ("count",), M, (scan,), (scan,)), views=(source, target))
    state = run(made, (3, 5, 1), (3, 7, 1), (2, 9, 1), (2, NULL, 1))
    assert state.views["V"] == {(): (value,)}


def test_first_rows_are_counted_with_their_copies() -> None:
    rows = View("D", ("a", "b"), COUNT, ordered=(Order(BIGINT, descending=True), Order(BIGINT)))
    change = (Add("V", ("x", "y"), ("count",), (Monomial((Value("d"),)),)),)
    top = (Top("row", "@m", 1, 4, ("x", "y"), "d", change),)
    made = program(Add("D", ("a", "b"), ("count",), M, top, top, top, "row"), views=(rows, view("V", "x", "y")))
    state = run(made, (1, 0, 2), (3, 7, 2), (3, 5, 1))
    assert state.views["V"] == {(3, 7): (2,), (1, 0): (1,)}
    state.apply("R", [({"a": 3, "b": 7}, -2)])
    assert state.views["V"] == {(1, 0): (2,)}
    state.apply("R", [({"a": NULL, "b": 7}, 9), ({"a": 3, "b": 5}, -1)])
    assert state.views["V"] == {(NULL, 7): (3,)}


def test_the_change_of_a_result_is_the_difference_since_the_last_call() -> None:
    made = program(Add("V", ("a",), ("count",), M), views=(view("V", "a", journal=True),), output="V")
    state = run(made, (1, 0, 2), (2, 0, 1), (2, 0, -1))
    assert state.change() == {(1,): (2,)}
    state.apply("R", [({"a": 1, "b": 0}, -2), ({"a": 3, "b": 0}, -1)])
    assert state.change() == {(1,): (-2,), (3,): (-1,)}
    assert state.change() == {}


def test_rows_are_emitted_only_while_the_change_is_wanted() -> None:
    made = program(Changed((Emit(("a",), M),)), views=())
    state = run(made, (1, 0, 2), (1, 0, 1), (2, 0, 1), (2, 0, -1))
    assert state.change() == {(1,): (3,)}
    state.wanted = False
    state.apply("R", [({"a": 1, "b": 0}, 1)])
    assert state.change() == {}


def test_a_result_that_is_not_stored_is_enumerated() -> None:
    made = program(Add("V", ("a", "b"), ("count",), M), views=(view("V", "a", "b"),))
    loop = Loop("V", ("a", "b"), (), "v", (Emit(("a",), (Monomial((ComponentOf("v", "count"),)),)),))
    state = run(replace(made, result=Enumerated((loop,))), (1, 1, 2), (1, 2, 3), (2, 1, 1), (2, 2, -1))
    assert state.output() == {(1,): (5,)}


def test_each_trigger_runs_over_the_whole_batch() -> None:
    views = (view("V", "a", "b", indexes=((0,),)), view("W"))
    base = program(Add("V", ("a", "b"), ("count",), M), views=views)
    loop = Loop("V", ("b", "c"), (0,), "v", (Add("W", (), ("count",), (Monomial((ComponentOf("v", "count"),)),)),))
    second = Trigger("R", base.triggers[0].parameters, (), (loop,))
    state = State(replace(base, triggers=(*base.triggers, second)))
    state.apply("R", [({"a": 1, "b": 2}, 1), ({"a": 2, "b": 3}, 1)])
    assert state.views["W"] == {(): (1,)}


@pytest.mark.parametrize(
    ("low", "high", "inside"),
    [
        (None, None, {1, 3, 5}),
        (Bound("b"), None, {3, 5}),
        (Bound("b", True), None, {5}),
        (None, Bound("b"), {1, 3}),
        (None, Bound("b", True), {1}),
        (Bound("a"), Bound("b", True), {1}),
        (Bound("b", True), Bound("a"), set()),
    ],
)
def test_a_range_contains_the_rows_between_its_bounds_and_no_null(
    low: Bound | None, high: Bound | None, inside: set[int]
) -> None:
    rows = View("P", ("g", "x"), COUNT, ordered=(Order(BIGINT),), sums=("count",))
    total = Monomial((ComponentOf("u", "count"),))
    made = program(
        Sum("u", COUNT, (RangeSum("u", Range("P", ("a",), low, high), 2),), (Add("V", ("a",), ("count",), (total,)),)),
        RangeLoop(Range("P", ("a",), low, high), ("x",), "p", (Add("W", ("x",), ("count",), ONE),)),
        views=(rows, view("V", "x"), view("W", "x")),
    )
    state = State(made)
    stored = {1: 10, 3: 20, 5: 40, NULL: 80}
    state.views["P"].update({(a, x): (n,) for x, n in stored.items() for a in (1, 2)})
    state.apply("R", [({"a": 1, "b": 3}, 1)])
    assert state.views["V"] == ({(1,): (2 * sum(stored[x] for x in inside),)} if inside else {})
    assert state.views["W"] == {(x,): (1,) for x in inside}
    state.apply("R", [({"a": 1, "b": NULL}, 1)])
    assert low is high is None or set(state.views["W"]) == {(x,) for x in inside}
