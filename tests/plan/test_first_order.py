"""First-order deltas under keys: lookups, the cost of an update, and when the planner chooses them."""

from __future__ import annotations

import pytest

from freshviews.catalog.catalog import Catalog
from freshviews.plan.delta import first_order
from freshviews.plan.planner import plan_block
from freshviews.program.program import Program
from freshviews.program.statements import Smaller
from freshviews.program.structure import bodies
from freshviews.query.dependencies import from_keys
from freshviews.sql.statements.sql_script import parse_script
from tests.plan.streams import Stream, relations_of
from tests.plan.test_strategies import assert_maintained
from tests.query.notation import query

STAR = "Q(x, y, z) = F(a, b, c), A(a, x), B(b, y), C(c, z)"
SNOWFLAKE = "Q(x, p) = F(o, b), O(o, c), C(c, x), B(b, p)"
# A nation has customers and suppliers; only a sale connects them, so the join goes through the orders.
TWO_WAYS = "Q(r) = F(o, s), O(o, c), C(c, n), S(s, n), N(n, r)"
FIRST = (("c0",),)


@pytest.mark.parametrize(
    ("text", "keys", "expected"),
    [
        (STAR, {"A": FIRST, "B": FIRST, "C": FIRST}, {"F": 0, "A": 1, "B": 1, "C": 1}),
        (STAR, {}, {"F": 3, "A": 2, "B": 2, "C": 2}),
        (SNOWFLAKE, {"O": FIRST, "C": FIRST, "B": FIRST}, {"F": 0, "O": 1, "C": 1, "B": 1}),
        (TWO_WAYS, {"O": FIRST, "C": FIRST, "S": FIRST, "N": FIRST}, {"F": 0, "O": 1, "C": 1, "S": 1, "N": 1}),
        ("Q() = R(a, b), S(b, c), T(c, a)", {}, {"R": 1, "S": 1, "T": 1}),
        # One key of two columns; one of them alone does not determine the row.
        ("Q(x) = F(a, b), D(a, b, x)", {"D": (("c0", "c1"),)}, {"F": 0, "D": 0}),
        ("Q(x) = F(a), D(a, b, x)", {"D": (("c0", "c1"),)}, {"F": 1, "D": 0}),
        # Both occurrences of E have the key; a row of E is in both.
        ("Q(b) = E(a, b), E(b, c)", {"E": FIRST}, {"E": 1, "E_2": 1}),
    ],
)
def test_keys_lower_the_exponent_of_an_update(text, keys, expected):
    made = query(text)
    assert first_order.update_exponents(made, from_keys(made, keys)) == expected


def planned(text: str) -> tuple[str, str, Program]:
    catalog = Catalog()
    *tables, made = parse_script(text, catalog)
    (block,) = made.view.blocks
    plan = plan_block(made.view, block, {table.name: table for table in tables})
    return plan.strategy, plan.reason, plan.program


TABLES = """
CREATE TABLE sales (cust BIGINT, part BIGINT, qty BIGINT) {0};
CREATE TABLE customers (cust BIGINT PRIMARY KEY, region BIGINT) {0};
CREATE TABLE parts (part BIGINT PRIMARY KEY, kind BIGINT) {0};
"""
JOINED = "sales JOIN customers USING (cust) JOIN parts USING (part)"
TRUSTED = "TBLPROPERTIES ('freshviews.trusted' = 'true')"


@pytest.mark.parametrize(
    ("select", "properties", "strategy"),
    [
        (f"SELECT region, kind, SUM(qty) AS qty FROM {JOINED} GROUP BY region, kind", "", "first_order"),
        # A view tree serves every update in O(1).
        ("SELECT cust, SUM(qty) AS qty FROM sales JOIN customers USING (cust) GROUP BY cust", "", "view_tree"),
        (f"SELECT region, kind, SUM(qty) AS qty FROM {JOINED} GROUP BY region, kind", TRUSTED, "first_order"),
        ("SELECT cust, SUM(qty) AS qty FROM sales JOIN customers USING (cust) GROUP BY cust", TRUSTED, "view_tree"),
    ],
)
def test_a_fact_that_determines_its_dimensions_is_joined_by_lookups(select, properties, strategy):
    found, reason, program = planned(TABLES.format(properties) + f"CREATE MATERIALIZED VIEW v AS {select};")
    assert found == strategy
    if strategy == "first_order":
        assert reason == "from a row of sales all other relations are looked up by their keys"
        # Keys of trusted tables are not checked: the choice expects them, but the program is right without them.
        assert dict(program.bounds)["update"] == ("O(N^2)" if properties == TRUSTED else "O(N)")
        assert [view.name for view in program.views] == ["sales", "customers", "parts", "Q"]


PATH = "Q(a, h) = " + ", ".join(f"E({one}, {other})" for one, other in zip("abcdefg", "bcdefgh", strict=True))


@pytest.mark.parametrize(
    "text",
    [PATH, "Q() = E(a, b), E(b, c), E(c, d), E(d, a), E(a, c), E(b, d), E(d, c), R(a, c)"],
)
def test_occurrences_of_a_relation_are_updated_one_by_one(text):
    made = query(text)
    program = first_order.plan(made)
    edges = [view.name for view in program.views if view.key[:2] == program.views[0].key[:2] and "E" in view.name]
    assert edges == ["E_after", "E"]
    assert dict(program.bounds)["deltas"].endswith("E take an update one after the other; the store exists twice")
    assert_maintained(program, made, Stream(relations_of(made), 5, values=3), batches=12)


def choices(body) -> int:
    return max((isinstance(s, Smaller) + max(map(choices, bodies(s)), default=0) for s in body), default=0)


def test_the_number_of_nested_choices_between_two_slices_is_limited():
    corners = "abcdefg"
    edges = ", ".join(f"R{a}{b}({a}, {b})" for a in corners for b in corners if a < b)
    program = first_order.plan(query(f"Q() = {edges}"))
    assert max(choices(trigger.body) for trigger in program.triggers) == 4
    assert dict(program.bounds)["loops"].startswith("greedy: ")
