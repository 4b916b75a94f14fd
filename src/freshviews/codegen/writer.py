"""Writes the text of a generated module, with local names that are valid Python and unique."""

from __future__ import annotations

import keyword
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

from freshviews.codegen.imports import IMPORTABLE

RESERVED = frozenset(
    {"state", "batch", "n", "i", "m", "status", "constants", "steps", "changes", "until", "leaving", "wanted", "key"}
)
"""Local names of generated functions that do not come from a program."""

MOST_LEVELS = 72
MOST_LOOPS = 19
"""Levels of indentation, and loops within each other, at which bodies and expressions become functions of their own:
Python takes 100 and 20, and a statement writes a few before its body begins."""

_WORD = re.compile(r"[^\W\d]\w*")

_ACTIVE = re.compile(r'[\x00-\x1f\\]|"""')

FUNCTIONS = re.compile(
    r"(on|each|part|ring|move|turn|next|take|has|open|close|close_union|condition|find|find_sum|upsert|slice_of)_\d+"
    r"|rebalance|evaluate|end_version|awake|project|finish|merge_payload|merge_changes|enumerate_rows|close_listed"
    r"|read_(change|rows|listed|group|groups|key|payload)"
)
"""Names of functions that a generated module defines."""


@dataclass
class Module:
    """The imports, constants and shared functions of a generated module, collected while functions are written.

    ``words``: identifiers in the code; those that a kernel defines are imported. ``constants``: string literals, each
    with its position in the constants of the state. ``calls``: kernels for lookups that are called, not inlined, each
    with its number of words. ``parts``, ``rings``: the names of parts of functions, and of users' rings, by their
    content; ``part_sources``, ``ring_sources``: the sources of those that triggers share. ``deferred``: the views to
    which some trigger appends rows, None until the first function begins. ``shapes``: words that the status leads to,
    each with its position.
    """

    words: set[str] = field(default_factory=set)
    constants: dict[str, int] = field(default_factory=dict)
    calls: set[tuple[str, int]] = field(default_factory=set)
    parts: dict[Hashable, str] = field(default_factory=dict)
    part_sources: list[str] = field(default_factory=list)
    deferred: frozenset[str] | None = None
    shapes: dict[tuple[int, ...], int] = field(default_factory=dict)
    rings: dict[Hashable, str] = field(default_factory=dict)
    ring_sources: list[str] = field(default_factory=list)

    def copy(self) -> Module:
        """A copy of the module with the same collections."""
        return Module(
            self.words.copy(),
            self.constants.copy(),
            self.calls.copy(),
            self.parts.copy(),
            self.part_sources.copy(),
            self.deferred,
            self.shapes.copy(),
            self.rings.copy(),
            self.ring_sources.copy(),
        )

    def shape(self, words: tuple[int, ...]) -> int:
        """The position of words among the shapes that the state holds. Equal shapes share their room."""
        return self.shapes.setdefault(words, sum(map(len, self.shapes)))


def inert(text: str) -> str:
    """Text for a one-line comment or docstring, escaped so that no name in it can end it."""
    return _ACTIVE.sub(lambda found: "".join(f"\\x{ord(letter):02x}" for letter in found[0]), text)


def tuple_of(words: Iterable[str]) -> str:
    """Source of a tuple."""
    given = list(words)
    return f"({given[0]},)" if len(given) == 1 else f"({', '.join(given)})"


@lru_cache(maxsize=1 << 14)
def _valid(wish: str) -> str:
    """The wanted name as a Python name that generated functions do not use."""
    name = re.sub(r"\W", "_", wish, flags=re.ASCII) or "_"
    if name[0].isdigit() or keyword.iskeyword(name):
        name = "_" + name
    return f"{name}_" if FUNCTIONS.fullmatch(name) else name


class Names:
    """Python names for variables, aliases and views of one function: readable, each with one meaning."""

    def __init__(self, reserved: frozenset[str]) -> None:
        self._names: dict[tuple[str, str], str] = {}
        self._taken: set[str] = {*IMPORTABLE, *reserved}
        self._numbers: dict[str, int] = {}

    def of(self, kind: str, name: str) -> str:
        """The Python name of a thing; asking again returns the same name."""
        known = self._names.get((kind, name))
        if known is None:
            known = self.fresh(name)
            self._names[kind, name] = known
        return known

    def fresh(self, wish: str) -> str:
        """A new name: the wanted one if it is free, otherwise with a number."""
        name = _valid(wish)
        before_number = f"{name}__" if FUNCTIONS.fullmatch(f"{name}_2") else f"{name}_"
        candidate = name
        while candidate in self._taken:
            # Names are never given back, so no number below is free.
            self._numbers[name] = self._numbers.get(name, 1) + 1
            candidate = f"{before_number}{self._numbers[name]}"
        self._taken.add(candidate)
        return candidate


class Writer:
    """One or more functions of a generated module: lines, local names, and the module that they are part of.

    Indentation follows the nesting of ``with writer.block(...)``. ``reserved`` are the names of parameters and of
    locals that are written as they are.
    """

    def __init__(self, module: Module, reserved: frozenset[str] = RESERVED) -> None:
        self.module = module
        self.names = Names(reserved)
        self._lines: list[str] = []
        self._parts: list[str] = []
        self._depth = 0
        self._loops = 0

    @property
    def is_deep(self) -> bool:
        """True if statements that nest further must be written as a function of their own (``part``)."""
        return self._depth >= MOST_LEVELS or self._loops >= MOST_LOOPS

    def line(self, text: str) -> None:
        self._append(text)
        self.module.words.update(_WORD.findall(text))

    def _append(self, text: str) -> None:
        self._lines.append("    " * self._depth + text if text else "")

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Indent the lines inside below ``head``; an empty block gets a pass."""
        self.line(head)
        self._depth += 1
        before = len(self._lines)
        yield
        if len(self._lines) == before:
            self.line("pass")
        self._depth -= 1

    @contextmanager
    def loop(self, head: str) -> Iterator[None]:
        """The block of a loop."""
        self._loops += 1
        with self.block(head):
            yield
        self._loops -= 1

    @contextmanager
    def part(
        self, parameters: Sequence[str], results: Sequence[str], content: Hashable = None
    ) -> Iterator[tuple[str, Writer]]:
        """A function ``part_k``, which the one here calls, with the same local names; the lines inside are its body.
        ``content``: what it is made of, if other functions of the module call it, too."""
        part = Writer(self.module)
        part.names = self.names
        name = f"part_{len(self.module.parts)}"
        self.module.parts[content or name] = name
        with part.function(name, ", ".join(parameters), "outside" if len(results) < 2 else "jit"):
            yield name, part
            part.line(f"return {', '.join(results) or 0}")
        (self.module.part_sources if content else self._parts).append(part.text())

    @contextmanager
    def function(self, name: str, parameters: str, decorator: str = "jit") -> Iterator[None]:
        """A function; the lines inside are its body. ``decorator``: ``jit`` or ``outside``."""
        assert FUNCTIONS.fullmatch(name), f"{name} is not reserved for functions"
        if self._lines:
            self._lines += ["", ""]
        self.line(f"@{decorator}")
        with self.block(f"def {name}({parameters}){' -> int' if decorator == 'outside' else ''}:"):
            yield

    def docstring(self, text: str) -> None:
        """The docstring of a function, of several lines."""
        for line in ('"""', *map(inert, text.rstrip().splitlines()), '"""'):
            self._append(line)

    def constant(self, text: str) -> int:
        """The position of a string literal in the constants of the state."""
        return self.module.constants.setdefault(text, len(self.module.constants))

    def text(self) -> str:
        return "\n\n".join([*self._parts, "\n".join(self._lines) + "\n"])


def write_called(module: Module) -> list[str]:
    """Sources of ``find_2(table, a, b)`` and the like, for lookups by key that are called and not inlined.

    A long function, or one that rarely runs, compiles in seconds instead of minutes with such calls.
    """
    sources = []
    for function, words in sorted(module.calls):
        key = [f"key_{i}" for i in range(words)]
        writer = Writer(module)
        with writer.function(f"{function}_{words}", ", ".join(["place", *key]), "outside"):
            writer.line(f"return {function}(place, {tuple_of(key)})")
        sources.append(writer.text())
    return sources
