"""Lists the names that generated source imports: kernel functions, and offsets of words in headers of tables."""

from __future__ import annotations

from freshviews.kernel.hash import ahead, memo, pending, renew, sum_table, table
from freshviews.kernel.hash import heavy_light as balance
from freshviews.kernel.hash import index as index_kernel
from freshviews.kernel.memory import mem
from freshviews.kernel.memory import outside as outside_kernel
from freshviews.kernel.ordered import folds as ordered_folds
from freshviews.kernel.ordered import index as ordered
from freshviews.kernel.ordered import index_updates, percentiles, threshold_tree, top
from freshviews.kernel.ordered import places as ordered_places
from freshviews.kernel.ordered import ranges as ordered_ranges
from freshviews.kernel.output import buffer, results
from freshviews.kernel.output import drain as output
from freshviews.kernel.rings import cofactor, cofactor_results, doubles, elements, narrow, steps
from freshviews.kernel.scalar import dates, failure, payload, real
from freshviews.kernel.scalar import operations as scalar
from freshviews.kernel.trie import flat as sorted_trie
from freshviews.kernel.trie import flat_build as sorted_trie_build

_MODULES = (
    table,
    index_kernel,
    ahead,
    balance,
    buffer,
    output,
    ordered,
    ordered_folds,
    ordered_ranges,
    ordered_places,
    percentiles,
    index_updates,
    top,
    threshold_tree,
    payload,
    failure,
    pending,
    real,
    narrow,
    elements,
    cofactor,
    cofactor_results,
    doubles,
    steps,
    renew,
    results,
    scalar,
    dates,
    outside_kernel,
    sorted_trie,
    sorted_trie_build,
    memo,
    sum_table,
    mem,
)
_NAMES = [
    (name, module, value)
    for module in reversed(_MODULES)
    for name, value in vars(module).items()
    if callable(value) or isinstance(value, int)
]
_HOMES = {name: module for name, module, _ in _NAMES} | {
    name: module for name, module, value in _NAMES if getattr(value, "__module__", "") == module.__name__
}
"""The module of a kernel function or a header word: the first that defines it, otherwise the first that imports it."""
_ALWAYS = ("jit", "load", "load32", "store")
_TABLE_WORDS = ("INDEX_LIST", "JOURNAL", "JOURNALED", "LIVE", "ORDERED_LIST", "ROWS", "SCRATCH", "USED", "WIDTH")
_BUILTINS = ("abs", "bool", "float", "int", "len", "max", "min", "range")

IMPORTABLE = frozenset(
    (*_ALWAYS, *_TABLE_WORDS, "NULL", *_BUILTINS, *(name for module in _MODULES for name in vars(module)))
)
"""Names with a meaning in a generated module; no local variable made from a program's name has one of these."""


def import_lines(words: set[str]) -> list[str]:
    """Import lines for the kernel functions and header words among the identifiers of a source."""
    lines = [
        f"from freshviews.kernel.memory.mem import {', '.join(_ALWAYS)}",
        "from freshviews.types import NULL",
        f"from freshviews.kernel.hash.table import {', '.join(_TABLE_WORDS)}",
    ]
    by_home: dict[str, list[str]] = {}
    for name in sorted(words.difference(_ALWAYS, _TABLE_WORDS, ("NULL",)).intersection(_HOMES)):
        by_home.setdefault(_HOMES[name].__name__, []).append(name)
    for module in _MODULES:
        if module.__name__ in by_home:
            lines.append(f"from {module.__name__} import {', '.join(by_home[module.__name__])}")
    return lines
