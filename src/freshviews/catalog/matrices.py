"""COFACTOR, COVAR_MATRIX and CORR_MATRIX: the numbers that they return, and the names of these columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations, combinations_with_replacement

MATRICES = ("cofactor", "covar_matrix", "corr_matrix")
"""The functions by lower-case name."""

Entry = tuple[int, ...]
"""The arguments of a number by their positions: none for the count, one for a sum, two for a sum of products."""


def entries_of(function: str, count: int, categories: Collection[int] = ()) -> list[tuple[str, Entry]]:
    """The columns of a function of ``count`` arguments, in order: the beginning of their name, and the entry.

    ``categories``: the arguments of a cofactor that are categories. The entry of a category with itself equals that of
    the category, so it has no column.
    """
    pairs = [(i, j) for i, j in combinations_with_replacement(range(count), 2) if i != j or i not in categories]
    if function == "cofactor":
        return [("count", ()), *(("sum", (i,)) for i in range(count)), *(("sum", pair) for pair in pairs)]
    if function == "covar_matrix":
        return [("covar", pair) for pair in pairs]
    return [("corr", pair) for pair in combinations(range(count), 2)]


def columns_of(function: str, arguments: Sequence[str | None], categories: Collection[int] = ()) -> list[str]:
    """The names of the columns. ``arguments``: the names of those that are columns or variables.

    Others are ``arg`` with their number; a name that came before gets a number behind it.
    """
    names: list[str] = []
    for i, given in enumerate(arguments, 1):
        name = f"arg{i}" if given is None else given
        names.append(f"{name}_{i}" if name in names else name)
    entries = entries_of(function, len(names), categories)
    return ["_".join((stem, *(names[i] for i in entry))) for stem, entry in entries]
