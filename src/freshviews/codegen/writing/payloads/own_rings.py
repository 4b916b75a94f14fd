"""Writes functions ``ring_k``, which compute with elements of users' rings by the formulas of the rings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType

from freshviews.codegen.writer import Module, Writer
from freshviews.records import dataclass
from freshviews.ring import RecordedRing, named
from freshviews.ring.formula import REAL, Formula, Node

ROW = -1
"""A factor that is an element of a row or a sum. Another factor is the lift of the argument with its number."""

_WHOLE = MappingProxyType(
    {
        "add": "step_add({}, {}, status)",
        "sub": "step_sub({}, {}, status)",
        "mul": "step_mul({}, {}, status)",
        "neg": "step_mul({}, -1, status)",
        "abs": "step_abs({}, status)",
        "floor_div": "step_quotient({}, {}, status)",
        "mod": "step_rest({}, {}, status)",
        "and": "step_word({} & {}, status)",
        "or": "step_word({} | {}, status)",
        "xor": "step_word({} ^ {}, status)",
        "invert": "step_word({} ^ -1, status)",
        "right": "{} >> {}",
        "lt": "1 if {} < {} else 0",
        "le": "1 if {} <= {} else 0",
        "eq": "1 if {} == {} else 0",
        "ne": "1 if {} != {} else 0",
        "floor": "step_floor({}, status)",
        "ceil": "step_ceil({}, status)",
        "trunc": "step_trunc({}, status)",
        "round": "step_round({}, status)",
    }
)
_DOUBLE = MappingProxyType(
    {
        "add": "{} + {}",
        "sub": "{} - {}",
        "mul": "{} * {}",
        "neg": "-{}",
        "abs": "abs({})",
        "div": "step_ratio({}, {}, status)",
        "pow": "step_power({}, {}, status)",
        "double": "float({})",
    }
)
"""The kernels of operations by the kind of their result."""


def _compiled(node: Node, args: Sequence[str]) -> str:
    spelled = (_DOUBLE if node.kind == REAL else _WHOLE)[node.op]
    return spelled.format(*(f"({arg})" if arg.startswith("-") else arg for arg in args))


@dataclass(frozen=True)
class _Lines:
    """The lines of a function, for ``Formula.write``."""

    writer: Writer

    def line(self, text: str) -> None:
        self.writer.line(text)

    def block(self, head: str) -> AbstractContextManager[None]:
        return self.writer.block(head)

    def fresh(self, wish: str) -> str:
        return self.writer.names.fresh(wish)

    def loaded(self, address: str, words: int, wish: str) -> list[str]:
        """The words at an address, in variables."""
        names = [self.fresh(wish) for _ in range(words)]
        for i, name in enumerate(names):
            self.line(f"{name} = load({address}, {i})")
        return names

    def applied(self, formula: Formula, given: Sequence[str], wish: str) -> list[str]:
        """The results of a formula, in variables."""
        names = [self.fresh(wish) for _ in formula.results]
        formula.write(self, _compiled, given, names)
        return names


def addition(module: Module, ring: RecordedRing, factors: tuple[int, ...]) -> str:
    """The name of the function ``(target, *factors, k, status)`` that adds ``k`` times the product of the factors to
    the element at ``target``. An element is given by its address, a value by its code."""
    return _function(module, (ring.family, factors), ring, factors)


def results_of(module: Module, ring: RecordedRing, entries: tuple[int, ...]) -> str:
    """The name of the function ``(target, element, known, status)`` that writes the codes of these values of a result,
    NULL where ``known`` is 0."""
    key = (ring.family, "results", entries)
    if key not in module.rings:
        name = module.rings[key] = f"ring_{len(module.rings)}"
        writer = Writer(module)
        lines = _Lines(writer)
        with writer.function(name, "target, element, known, status", "outside"):
            with writer.block("if known == 0:"):
                for i in range(len(entries)):
                    writer.line(f"store(target, {i}, NULL)")
                writer.line("return 0")
            values = lines.applied(ring.value, lines.loaded("element", ring.size, "word"), "value")
            for i, entry in enumerate(entries):
                value = values[entry]
                writer.line(f"store(target, {i}, {f'code({value})' if ring.value.results[entry] == REAL else value})")
            writer.line("return 0")
        module.ring_sources.append(writer.text())
    return module.rings[key]


def _function(module: Module, key: object, ring: RecordedRing, factors: tuple[int, ...]) -> str:
    if key in module.rings:
        return module.rings[key]
    name = module.rings[key] = f"ring_{len(module.rings)}"
    writer = Writer(module)
    lines = _Lines(writer)
    given = [f"factor_{i}" for i in range(len(factors))]
    with writer.function(name, ", ".join(["target", *given, "k", "status"]), "outside"):
        # Rows that do not count have a factor of 0, and their values need no lift.
        with writer.block("if k == 0:"):
            writer.line("return 0")
        lifted = _lifts(lines, ring, dict(zip(given, factors, strict=True)))
        product: list[str] = []
        for at, factor in zip(given, factors, strict=True):
            element = lines.loaded(at, ring.size, "word") if factor == ROW else lifted[at]
            if not product:
                product = element
            else:
                assert ring.product is not None
                product = lines.applied(ring.product, [*product, *element], "product")
        added = lines.applied(ring.multiple, [*product, "k"], "added")
        total = lines.applied(ring.sum, [*lines.loaded("target", ring.size, "before"), *added], "after")
        for i, word in enumerate(total):
            writer.line(f"store(target, {i}, {word})")
        writer.line("return 0")
    module.ring_sources.append(writer.text())
    return name


def _lifts(lines: _Lines, ring: RecordedRing, factors: Mapping[str, int]) -> dict[str, list[str]]:
    """The lifts of the values among factors, in variables.

    A value whose lift fails adds nothing, whatever has failed before, so its negation undoes exactly what it added.
    """
    chosen = {at: factor for at, factor in factors.items() if factor != ROW}
    guarded = any(ring.lifts[factor].may_fail for factor in chosen.values())
    if guarded:
        lines.line("earlier = load(status, 0)")
        lines.line("store(status, 0, 0)")
    found = {}
    for at, factor in chosen.items():
        value = lines.fresh("value")
        lines.line(f"{value} = {f'f64({at})' if ring.kinds[factor] == REAL else at}")
        found[at] = lines.applied(ring.lifts[factor], [value], "lifted")
    if guarded:
        lines.line("failed = load(status, 0)")
        with lines.block("if earlier != 0:"):
            lines.line("store(status, 0, earlier)")
        with lines.block("if failed != 0:"):
            lines.line("return 0")
    return found


def recorded_ring(name: str) -> RecordedRing | None:
    """The user's ring of this name; None if the ring is another."""
    found = named(name)
    return found if isinstance(found, RecordedRing) else None
