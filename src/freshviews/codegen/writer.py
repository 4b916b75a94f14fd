"""Writing Python source: indentation, and names that are Python identifiers."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator
from contextlib import contextmanager

from freshviews.codegen.imports import IMPORTABLE

RESERVED = frozenset({"state", "batch", "n", "i", "m", "status", "constants", "steps", "changes", "until", "wanted"})
"""Names that generated functions have for what is not the program's."""


class Writer:
    """Lines of source with an indentation that follows the nesting of ``with writer.block(...)``."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._depth = 0

    def line(self, text: str = "") -> None:
        self.lines.append("    " * self._depth + text if text else "")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines inside are indented below ``head``; an empty block gets a pass."""
        self.line(head)
        self._depth += 1
        before = len(self.lines)
        yield
        if len(self.lines) == before:
            self.line("pass")
        self._depth -= 1

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


class Names:
    """Python names for variables, aliases and views: one each, readable, never the same twice."""

    def __init__(self, reserved: frozenset[str] = frozenset()) -> None:
        self._names: dict[tuple[str, str], str] = {}
        self._taken: set[str] = {*IMPORTABLE, *reserved}

    def of(self, kind: str, name: str) -> str:
        """The Python name of a thing; asking again gives the same."""
        known = self._names.get((kind, name))
        if known is None:
            known = self.fresh(name)
            self._names[kind, name] = known
        return known

    def fresh(self, wish: str) -> str:
        """A name that is new, as close to the wish as can be."""
        name = re.sub(r"\W", "_", wish) or "_"
        if name[0].isdigit() or keyword.iskeyword(name):
            name = "_" + name
        candidate = name
        number = 2
        while candidate in self._taken:
            candidate = f"{name}_{number}"
            number += 1
        self._taken.add(candidate)
        return candidate
