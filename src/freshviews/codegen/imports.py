"""What generated source imports: kernel functions, and words of a table's header."""

from __future__ import annotations

from freshviews.kernel import (
    ahead,
    balance,
    buffer,
    dates,
    mem,
    memo,
    ordered,
    ordered_folds,
    output,
    payload,
    pending,
    real,
    renew,
    results,
    scalar,
    sorted_trie,
    sorted_trie_build,
    sum_table,
    table,
    top,
)
from freshviews.kernel import index as index_kernel
from freshviews.kernel import outside as outside_kernel

_MODULES = (
    table,
    index_kernel,
    ahead,
    balance,
    buffer,
    output,
    ordered,
    ordered_folds,
    top,
    payload,
    pending,
    real,
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
_ALWAYS = ("jit", "load", "load32", "store")
_TABLE_WORDS = ("INDEX_LIST", "JOURNAL", "JOURNALED", "LIVE", "ORDERED_LIST", "ROWS", "SCRATCH", "USED", "WIDTH")

_BUILTINS = ("abs", "bool", "float", "int", "len", "max", "min", "range")

IMPORTABLE = frozenset(
    (*_ALWAYS, *_TABLE_WORDS, "NULL", *_BUILTINS, *(name for module in _MODULES for name in vars(module)))
)
"""Names that mean something in a generated module, so that no local variable may have them."""


def import_lines(used: set[str]) -> list[str]:
    """Import lines for the kernel functions that the source calls."""
    lines = [
        f"from freshviews.kernel.mem import {', '.join(_ALWAYS)}",
        "from freshviews.types import NULL",
        f"from freshviews.kernel.table import {', '.join(_TABLE_WORDS)}",
    ]
    missing = sorted(used - set(_ALWAYS))
    for module in _MODULES:
        own = [name for name in missing if hasattr(module, name)]
        if own:
            lines.append(f"from {module.__name__} import {', '.join(own)}")
            missing = [name for name in missing if name not in own]
    assert not missing, f"no kernel defines {missing}"
    return lines
