"""Names in programs: no name made by a strategy equals another one, for any names of the user."""

from __future__ import annotations

from dataclasses import replace

import pytest

from freshviews.errors import PlanError
from freshviews.expr.nodes import Column, Expr, substitute
from freshviews.plan import STRATEGIES
from freshviews.plan.crown import propagation as crown
from freshviews.plan.naming import RESULT, Namer, names_in, names_of
from freshviews.program.program import Program
from freshviews.query.query import Aggregate, Lift, Query
from freshviews.types import BIGINT
from tests.plan.cases import total
from tests.plan.streams import Stream, relations_of
from tests.plan.test_strategies import assert_maintained
from tests.program import wellformed
from tests.query.notation import column, query

COUNT = Aggregate("count", "integer")
QUERIES = {
    "path": query("Q(a) = R(a, b), S(b, c), T(c, d)", (COUNT, total("sum_d", ("T", column("c1"))))),
    "triangle of one table": query("Q() = E(a, b), E(b, c), E(c, a)"),
    "triangle": query("Q() = R(a, b), S(b, c), T(c, a)"),
    "two paths of one table": query("Q(a, c) = E(a, b), E(b, c)"),
    "across": query("Q(a) = R(a, b), S(b, c)", (COUNT, total("sum_x", (None, column("a")), (None, column("c"))))),
}


def renamed(made: Query, names: dict[str, str]) -> Query:
    """The query with other names for its variables and for the columns of its relations."""
    columns: dict[str, Expr] = {old: Column(new, BIGINT, False) for old, new in names.items()}

    def lifted(lift: Lift) -> Lift:
        return replace(lift, expr=substitute(lift.expr, columns))

    return replace(
        made,
        free=tuple(names.get(v, v) for v in made.free),
        atoms=tuple(
            replace(
                atom,
                variables=tuple(names.get(v, v) for v in atom.variables),
                columns=tuple(substitute(c, columns) for c in atom.columns),
            )
            for atom in made.atoms
        ),
        aggregates=tuple(replace(a, lifts=tuple(map(lifted, a.lifts))) for a in made.aggregates),
        conditions=tuple(substitute(c, columns) for c in made.conditions),
    )


def check_names(program: Program) -> None:
    """Variables, rows and views have different names."""
    variables = {p.name for trigger in program.triggers for p in trigger.parameters}
    rows: set[str] = set()
    for body in (*(t.body for t in program.triggers), *program.result.bodies, program.upkeep.statements):
        keys, aliases = names_of(body)
        variables |= keys
        rows |= aliases
    views = {view.name for view in program.stores} - {RESULT}
    assert not variables & rows and not variables & views and not rows & views


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", QUERIES)
def test_no_generated_name_equals_a_name_of_the_user(name: str, strategy: str) -> None:
    """Every name that a program makes is used as a user's variable and column, and the program is made again."""
    made = QUERIES[name]
    try:
        program = STRATEGIES[strategy].of_query(made)
    except PlanError as error:
        pytest.skip(str(error))
    check_names(program)
    fresh = sorted({*names_in(program)} - {*made.variables, RESULT, "c0", "c1"})
    old = [*made.variables, "c0", "c1"]
    for first in range(0, len(fresh), len(old)):
        other = renamed(made, dict(zip(old, fresh[first : first + len(old)], strict=False)))
        again = STRATEGIES[strategy].of_query(other)
        wellformed.check(again)
        check_names(again)
        assert_maintained(again, other, Stream(relations_of(other), 1), 6)


@pytest.mark.parametrize("free", ["", "d, e"])
def test_rows_and_variables_of_a_bag_have_different_names(free: str) -> None:
    """Found at random: the second row of V, and the second variable of a bag's program, were both called v2."""
    made = query(f"Q({free}) = E(a, b), E(b, c), E(c, d), E(d, a), V(a, c, e)")
    for program in (crown.plan(made), crown.plan_enumerated(made)):
        assert program is not None
        wellformed.check(program)
        check_names(program)


def test_a_generated_name_gets_an_underscore_if_it_is_in_use() -> None:
    names = Namer(query("Q(a, r) = R(a, r)"), ("V_a",))
    assert [names.view("R"), names.view("R"), names.view("V_a"), names.view(RESULT)] == ["R", "R_", "V_a_", "Q_"]
    assert [names.alias("R"), names.alias("R"), names.fresh("c0")] == ["r_row", "r_row", "c0_"]
