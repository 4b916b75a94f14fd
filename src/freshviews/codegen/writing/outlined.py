"""Kernels that find a row or a slice by its key, as functions of a generated module that are called and not inlined.

A long trigger, or what is rarely run, calls ``find_2(table, a, b)`` instead of having ``find(table, (a, b))`` inlined:
the compiler takes seconds over it then, not minutes. See ``StatementWriter.by_key``.
"""

from __future__ import annotations

from freshviews.codegen.writer import Writer
from freshviews.codegen.writing.statements import OUTLINED


def write_outlined(used: set[str]) -> list[str]:
    """Sources of those that a module needs; they are taken out of ``used``."""
    names = sorted(name for name in used if name.startswith(OUTLINED))
    used.difference_update(names)
    if names:
        used.add("outside")
    return [_write(name.removeprefix(OUTLINED)) for name in names]


def _write(name: str) -> str:
    function, _, count = name.rpartition("_")
    words = ", ".join(f"key_{i}" for i in range(int(count)))
    writer = Writer()
    writer.line("@outside")
    with writer.block(f"def {name}__HASH__(place, {words}) -> int:"):
        writer.line(f"return {function}(place, ({words},))")
    return writer.text()
