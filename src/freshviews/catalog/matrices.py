"""Names the result columns of COFACTOR, COVAR_MATRIX and CORR_MATRIX, and lists the arguments of each column."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations, combinations_with_replacement

MATRICES = ("cofactor", "covar_matrix", "corr_matrix")
"""The functions by lower-case name."""

Entry = tuple[int, ...]
"""The positions of the arguments of a number: none for the count, one for a sum, two for a sum of products."""


def entries_of(function: str, count: int, categories: Collection[int] = ()) -> list[tuple[str, Entry]]:
    """The columns of a function of ``count`` arguments, in order: the prefix of the name, and the entry.

    ``categories``: positions of the arguments of a cofactor that are categories. A category has no column for its
    product with itself, which equals the category's own.
    """
    pairs = [(i, j) for i, j in combinations_with_replacement(range(count), 2) if i != j or i not in categories]
    if function == "cofactor":
        return [("count", ()), *(("sum", (i,)) for i in range(count)), *(("sum", pair) for pair in pairs)]
    if function == "covar_matrix":
        return [("covar", pair) for pair in pairs]
    return [("corr", pair) for pair in combinations(range(count), 2)]


def columns_of(function: str, arguments: Sequence[str | None], categories: Collection[int] = ()) -> list[str]:
    """The names of the columns. ``arguments``: the names of arguments that are columns or variables, None for others.

    An argument without a name is ``arg`` and its position; a repeated name gets a number appended.
    """
    names: list[str] = []
    for i, given in enumerate(arguments, 1):
        name = f"arg{i}" if given is None else given
        names.append(f"{name}_{i}" if name in names else name)
    entries = entries_of(function, len(names), categories)
    return ["_".join((stem, *(names[i] for i in entry))) for stem, entry in entries]
