"""Rings as users write them, registered when this module is imported; and the SQL that DuckDB computes instead."""

from __future__ import annotations

from typing import Any

import freshviews as fv
from freshviews.catalog.rings import BIT_XOR, bit_xor, register
from tests.agreement.scenario import Text

PRIME = 1_000_003
SMALL = 97


def _cube_lift(x: Any) -> Any:
    """1 + a t + a^2 t^2 + a^3 t^3."""
    a = x % SMALL
    return tuple(a**n for n in range(4))


def _truncated(a: Any, b: Any) -> Any:
    """The product of two polynomials, without powers above t^3."""
    return tuple(sum(a[i] * b[n - i] for i in range(n + 1)) for n in range(4))


def _bin(z: Any) -> Any:
    if z < 0.0:
        return (1, 0, 0)
    return (0, 1, 0) if z < 10.0 else (0, 0, 1)


GAUSS = fv.UserRing(
    name="gauss",
    arguments=("BIGINT", "BIGINT"),
    words=2,
    results={"re": "BIGINT", "im": "BIGINT"},
    lift=lambda x: (x, 1),
    multiply=lambda a, b: (a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]),
)
POLY = fv.UserRing(
    name="poly",
    arguments=("BIGINT", "BIGINT"),
    words=4,
    results={f"c{n}": "BIGINT" for n in range(4)},
    lift=_cube_lift,
    multiply=_truncated,
)
MODULO = fv.UserRing(
    name="modulo",
    arguments=("BIGINT", "BIGINT"),
    words=1,
    results="BIGINT",
    lift=lambda x: x % PRIME,
    add=lambda a, b: (a + b) % PRIME,
    multiply=lambda a, b: a * b % PRIME,
    scale=lambda a, k: a * (k % PRIME) % PRIME,
)
BINS = fv.UserRing(
    name="bins",
    arguments=("DOUBLE",),
    words=3,
    results={"share": "DOUBLE", "low": "BIGINT"},
    lift=_bin,
    value=lambda a: ((a[0] + 0.0) / (abs(a[0] + a[1] + a[2]) + 1.0), a[0] - a[2]),
)

USER_RINGS = {ring.name: ring for ring in (GAUSS, POLY, MODULO, BINS)}
AGGREGATES = {name: register(ring) for name, ring in USER_RINGS.items()} | {"bit_xor": bit_xor()}
USER_RINGS["bit_xor"] = BIT_XOR


def gauss(x: str, y: str) -> Text:
    columns = f"SUM(({x}) * ({y}) - 1) AS gauss_0, SUM(({x}) + ({y}))"
    return Text(f"GAUSS({x}, {y})", columns)


def poly(x: str, y: str) -> Text:
    a, b = (f"((({one}) % {SMALL} + {SMALL}) % {SMALL})" for one in (x, y))
    sums = ["(" + " + ".join(" * ".join(["1", *[a] * i, *[b] * (n - i)]) for i in range(n + 1)) + ")" for n in range(4)]
    # The product of all makes it NULL if an argument is NULL.
    columns = [f"SUM({one} + 0 * {a} * {b})" for one in sums]
    named = [f"{column} AS poly_{n}" for n, column in enumerate(columns[:-1])]
    return Text(f"POLY({x}, {y})", ", ".join([*named, columns[-1]]))


def modulo(x: str, y: str) -> Text:
    return Text(f"MODULO({x}, {y})", f"(SUM(({x}) * ({y})) % {PRIME} + {PRIME}) % {PRIME}")


def bins(z: str) -> Text:
    low = f"COUNT(*) FILTER (WHERE ({z}) < 0)"
    high = f"COUNT(*) FILTER (WHERE ({z}) >= 10)"
    known = f"CASE WHEN COUNT({z}) > 0 THEN"
    share = f"{known} {low} / (COUNT({z}) + 1.0::DOUBLE) END AS bins_0"
    return Text(f"BINS({z})", f"{share}, {known} {low} - {high} END")
