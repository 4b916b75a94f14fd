"""The table of queries that every strategy runs on; a randomly found failure becomes a row here.

Columns of a relation are c0, c1, ... as in ``tests.query.notation``, all BIGINT NOT NULL.
"""

from __future__ import annotations

from dataclasses import replace

from freshviews.expr.nodes import Call, Expr, Literal
from freshviews.query.query import Aggregate, Lift, Query
from freshviews.types import BIGINT, BOOLEAN, DOUBLE, SqlType
from tests.query.notation import column, query

COUNT = Aggregate("count", "integer")



def total(name: str, *lifts: tuple[str | None, Expr], ring: str = "integer") -> Aggregate:
    """A sum of the product of lifts, each a pair of an atom (None: across atoms) and an expression."""
    return Aggregate(name, ring, tuple(Lift(atom, expr) for atom, expr in lifts))


def cofactor(
    name: str, *lifts: tuple[str | None, Expr], number: str = "integer", flags: tuple[tuple[str, Expr], ...] = ()
) -> Aggregate:
    """The cofactor of lifts, numbered in their order; ``flags`` are integer factors of each row."""
    placed = [Lift(atom, expr, place) for place, (atom, expr) in enumerate(lifts)]
    return Aggregate(name, f"cofactor.{number}", (*placed, *(Lift(atom, expr) for atom, expr in flags)))


def call(op: str, *args: Expr, type: SqlType = BIGINT) -> Call:
    return Call(op, args, type, False)


def double(name: str) -> Expr:
    return call("int_to_float", column(name), type=DOUBLE)


def tenth(name: str) -> Expr:
    """A tenth of a column, a DOUBLE without an exact binary fraction."""
    return call("mul_float", double(name), Literal(0.1, DOUBLE), type=DOUBLE)


def wild(name: str) -> Expr:
    """A DOUBLE that is sometimes infinite and sometimes NaN."""
    special = {1: "inf", 2: "-inf", 3: "nan"}
    args: list[Expr] = []
    for value, text in special.items():
        args += [call("eq", column(name), Literal(value, BIGINT), type=BOOLEAN), Literal(float(text), DOUBLE)]
    return Call("case", (*args, tenth(name)), DOUBLE, False)


def count(text: str) -> Query:
    return query(text)


def sums(text: str, *aggregates: Aggregate) -> Query:
    return query(text, (COUNT, *aggregates))


def filtered(made: Query, atom: str, *filters: Expr) -> Query:
    """The query with filters on one of its atoms."""
    atoms = tuple(replace(a, filters=(*a.filters, *filters)) if a.name == atom else a for a in made.atoms)
    return replace(made, atoms=atoms)


def computed(made: Query, atom: str, variable: str, expr: Expr) -> Query:
    """The query with a variable of one atom computed by an expression."""
    atoms = []
    for a in made.atoms:
        columns = tuple(
            expr if a.name == atom and v == variable else c
            for v, c in zip(a.variables, a.columns, strict=True)
        )
        atoms.append(replace(a, columns=columns))
    return replace(made, atoms=tuple(atoms))


def forgetful(made: Query, **kept: tuple[str, ...]) -> Query:
    """The query with only some variables of its atoms; the other columns are read by lifts alone."""
    atoms = []
    for a in made.atoms:
        pairs = [
            (v, c) for v, c in zip(a.variables, a.columns, strict=True) if v in kept.get(a.name, a.variables)
        ]
        atoms.append(replace(a, variables=tuple(v for v, _ in pairs), columns=tuple(c for _, c in pairs)))
    return replace(made, atoms=tuple(atoms))


X1 = column("c1")

CASES: dict[str, Query] = {
    # one atom
    "copy": count("Q(a, b) = R(a, b)"),
    "projection": count("Q(a) = R(a, b)"),
    "total": sums("Q() = R(a, b)", total("s", ("R", X1))),
    "repeated variable": count("Q(a) = R(a, a)"),
    "no columns": count("Q() = R(), S(a)"),
    # the lecture's examples
    "join": count("Q(a, b) = R(a, b), S(b)"),
    "project join": count("Q(a) = R(a, b), S(b)"),
    "count of a join": count("Q() = R(a, b), S(b)"),
    "lecture": count("Q(a, b, c) = R(a, b), S(a, c, e), T(a, c, d)"),
    "triangle count": count("Q() = R(a, b), S(b, c), T(c, a)"),
    "triangles": count("Q(a, b, c) = R(a, b), S(b, c), T(c, a)"),
    "push past joins": sums(
        "Q() = R(a, b), S(a, c, e), T(c, d)", total("cd", ("S", column("c1")), ("T", column("c1")))
    ),
    # shapes
    "path": count("Q(a, d) = R(a, b), S(b, c), T(c, d)"),
    "path count": count("Q() = R(a, b), S(b, c), T(c, d), U(d, e)"),
    "star": count("Q(k) = R(k, a), S(k, b), T(k, c)"),
    "star join": count("Q(k, a, b) = R(k, a), S(k, b)"),
    "snowflake": count("Q(a) = F(x, y), R(x, a), S(y, z), T(z)"),
    "four-cycle": count("Q() = R(a, b), S(b, c), T(c, d), U(d, a)"),
    "clique with a tail": count("Q(d) = R(a, b), S(b, c), T(c, a), U(c, d)"),
    "product": count("Q(a, b) = R(a), S(b)"),
    "product of totals": count("Q() = R(a), S(b), T(c)"),
    "contained atoms": count("Q(a) = R(a, b), S(a), T(b), U(a, b)"),
    "disconnected join": count("Q(a, c) = R(a, b), S(b), T(c, d), U(d)"),
    "free order": count("Q(c, a) = S(b, c), R(a, b)"),
    # one relation, more than once
    "self-join": count("Q(a, c) = E(a, b), E(b, c)"),
    "self-join of equals": count("Q(a, b) = E(a, b), E(a, b)"),
    "one-relation triangles": count("Q() = E(a, b), E(b, c), E(c, a)"),
    "one-relation paths": count("Q(a, d) = E(a, b), E(b, c), E(c, d)"),
    "self-join with a sum": sums("Q(a) = E(a, b), E(b, c)", total("s", ("E_2", X1))),
    "self-join and another": count("Q(a) = E(a, b), R(b), E(b, a)"),
    "self-join with a condition": count("Q(a) = E(a, b), E(a, c), b < c"),
    # conditions
    "inequality join": count("Q() = R(a), S(b), a < b"),
    "condition along a path": count("Q(a) = R(a, b), S(b, c), T(c, d), a < d"),
    "condition at the ends": count("Q(b, c) = R(a, b), S(b, c), T(c, d), a <= d, a != c"),
    "condition inside an atom": count("Q(a) = R(a, b), S(b, c), a < b"),
    "conditions on a triangle": count("Q() = E(a, b), E(b, c), E(c, a), a < b, a < c"),
    "condition within a component": count("Q(a) = R(a, b), S(b, c), T(c, d), b != d"),
    "condition across components": count("Q(k) = R(k, a), S(k, b), T(k, c), a < b, b <= c"),
    # filters, computed columns
    "filters": filtered(
        count("Q(a) = R(a, b), S(b, c)"), "R", call("lt", column("c0"), column("c1"), type=BOOLEAN)
    ),
    "a filter that takes nothing": filtered(count("Q(a) = R(a), S(a)"), "R", Literal(False, BOOLEAN)),
    "computed join": computed(
        count("Q(a, c) = R(a, b), S(b, c)"), "R", "b", call("mod_int", X1, Literal(2, BIGINT))
    ),
    "computed self-join": computed(
        count("Q(a, c) = E(a, b), E(b, c)"), "E_2", "b", call("add_int", column("c0"), Literal(1, BIGINT))
    ),
    # sums of integers
    "sums": sums("Q(a) = R(a, b), S(b, c)", total("x", ("R", X1)), total("y", ("S", X1))),
    "sum of a product": sums("Q(a) = R(a, b), S(b, c)", total("xy", ("R", column("c0")), ("S", X1))),
    "sum of squares": sums("Q() = R(a), S(a, b)", total("xx", ("S", X1), ("S", X1))),
    "forgotten columns": forgetful(
        sums("Q(a) = R(a, b), S(a, c)", total("x", ("R", X1)), total("y", ("S", X1))), R=("a",), S=("a",)
    ),
    "sum that cancels out": forgetful(
        sums("Q(a) = R(a, b), S(a)", total("x", ("R", call("sub_int", X1, Literal(1, BIGINT))))), R=("a",)
    ),
    "sum over variables": sums(
        "Q(a) = R(a, b), S(a, c)", total("bc", (None, call("mul_int", column("b"), column("c"))))
    ),
    "sum over variables of a path": sums(
        "Q() = R(a, b), S(b, c), T(c, d)",
        total("ad", (None, call("sub_int", column("a"), column("d")))),
        total("bc", (None, call("mul_int", column("b"), column("c"))), ("R", column("c0"))),
    ),
    "lifts within and across": sums(
        "Q(k) = R(k, a), S(k, b), T(k, c), a < c",
        total(
            "all",
            ("R", X1),
            (None, call("add_int", column("a"), column("b"))),
            (None, call("add_int", column("b"), column("c"))),
        ),
    ),
    "sums on a triangle": sums(
        "Q() = R(a, b), S(b, c), T(c, a)", total("x", ("R", X1)), total("y", ("T", X1), ("S", column("c0")))
    ),
    "equal lifts": sums("Q(a) = R(a, b), S(b)", total("x", ("R", X1)), total("also_x", ("R", X1))),
    "two counts": sums("Q(a) = R(a, b), S(b)", total("n")),
    # sums of doubles
    "real sum": sums("Q(a) = R(a, b), S(b)", total("x", ("R", tenth("c1")), ring="real")),
    "real sum below a join": forgetful(
        sums("Q() = R(a, b), S(a, c), T(c)", total("x", ("R", tenth("c1")), ring="real")), R=("a",)
    ),
    "real sum with infinities": forgetful(
        sums("Q(a) = R(a, b), S(a)", total("x", ("R", wild("c1")), ring="real")), R=("a",)
    ),
    "real and integer sums": sums(
        "Q(a) = E(a, b), E(b, c)",
        total("x", ("E", tenth("c1")), ring="real"),
        total("y", ("E_2", X1)),
        total("z", ("E_2", tenth("c1")), ring="real"),
    ),
    "real sum over variables": sums(
        "Q(a) = R(a, b), S(a, c)",
        total(
            "bc",
            (None, call("mul_float", tenth("b"), double("c"), type=DOUBLE)),
            ring="real",
        ),
    ),
    # cofactors: x of R and z of T are variables 1 and 0, so ranges are not in the order of the atoms
    "a cofactor of one relation": sums("Q(a) = R(a, b)", cofactor("c", ("R", column("c1")), ("R", X1))),
    "a cofactor over a join": sums(
        "Q(a) = R(a, b), S(b, d), T(b, e)",
        cofactor("c", ("T", column("c1")), ("R", X1), ("S", column("c1")), ("R", column("c0"))),
    ),
    "a cofactor of doubles over a join": sums(
        "Q() = R(a, b), S(a, c), T(c)",
        cofactor("c", ("R", tenth("c1")), ("S", tenth("c0")), ("T", double("c0")), number="double"),
    ),
    "a cofactor of doubles by group": sums(
        "Q(a) = R(a, b), S(a, c)",
        cofactor("c", ("S", tenth("c1")), ("R", tenth("c1")), number="double"),
        total("x", ("R", tenth("c1")), ring="real"),
        total("y", ("S", X1)),
    ),
    "a cofactor of rows that count": sums(
        "Q(a) = E(a, b), E(b, c)", cofactor("c", ("E", column("c1")), ("E_2", X1), flags=(("E_2", column("c0")),))
    ),
    "a cofactor over variables": sums(
        "Q(a) = R(a, b), S(a, c)", cofactor("c", (None, call("add_int", column("b"), column("c"))), ("R", X1))
    ),
    "a cofactor on a triangle": sums(
        "Q() = R(a, b), S(b, c), T(c, a)", cofactor("c", ("R", X1), ("S", column("c0")), ("T", column("c1")))
    ),
    # names that could collide
    "variables named as rows": count("Q(r, s) = R(r, s), S(s, t), T(t, u), U(u)"),
    "an atom named as the result": count("Q(a) = Q(a, b), S(b)"),
}


