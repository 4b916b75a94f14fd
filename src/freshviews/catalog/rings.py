"""Registers users' rings by name, so that SQL can call them as aggregates.

A process that does not run the user's program imports the modules that the environment variable FRESHVIEWS_RINGS names.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from types import MappingProxyType

from freshviews.errors import RingDefinitionError
from freshviews.query.block import RINGS, Block
from freshviews.records import dataclass
from freshviews.ring import RecordedRing, UserRing, check_form, family_named, know, recorded
from freshviews.ring.formula import PARAMETER, REAL, WHOLE, Branch
from freshviews.types import BIGINT, DOUBLE, SqlType, decimal

_TYPES = {one.name: one for one in (BIGINT, DOUBLE)}
_DECIMAL = re.compile(r"DECIMAL\((\d+)(?:, ?(\d+))?\)")
_GREATEST_PRECISION = 18


@dataclass(frozen=True)
class RingAggregate:
    """The aggregate of a ring: the types of its arguments, and the names and types of the values of its result.

    ``is_single``: the result is one value, not columns.
    """

    name: str
    arguments: tuple[SqlType, ...]
    results: tuple[tuple[str, SqlType], ...]
    is_single: bool
    ring: RecordedRing

    @property
    def family(self) -> str:
        """The family of rings that its components belong to."""
        return self.ring.family

    def function(self, entry: int) -> str:
        """The function of RINGS that reads a value of the result."""
        value = self.ring.value
        word = not isinstance(value.tree, Branch) and value.nodes[value.tree[entry]].op == PARAMETER
        return RINGS[0] if word and len(value.nodes) == self.ring.size else RINGS[1]


MODULES = "FRESHVIEWS_RINGS"
"""The environment variable with the names of modules that register rings, separated by commas."""

_registered: dict[str, RingAggregate] = {}
_of_family: dict[str, RingAggregate] = {}
_NONE: Mapping[str, RingAggregate] = MappingProxyType({})
_of_checkpoint: ContextVar[Mapping[str, RingAggregate]] = ContextVar("rings of a checkpoint", default=_NONE)
_imported: set[str] = set()


def register(ring: UserRing) -> RingAggregate:
    """Record a ring, check its laws, and let SQL know its aggregate. Raises RingDefinitionError."""
    aggregate = _recorded(ring)
    _registered[ring.name.lower()] = aggregate
    return aggregate


BIT_XOR = UserRing(
    "BIT_XOR",
    ("BIGINT",),
    words=2,
    results="BIGINT",
    lift=lambda x: (x >> 32, x & (2**32 - 1)),
    add=lambda a, b: (a[0] ^ b[0], a[1] ^ b[1]),
    scale=lambda a, k: (a[0] & -(k & 1), a[1] & -(k & 1)),
    value=lambda a: a[0] * 2**31 + (a[0] * 2**31 + a[1]),
)
"""Integers under exclusive or: an element added an even number of times is zero.

It has the upper and the lower 32 bits, so that only the value, not a step on the way, fails if it is the least BIGINT.
"""


@cache
def bit_xor() -> RingAggregate:
    """The aggregate over BIT_XOR."""
    return _recorded(BIT_XOR)


def _recorded(ring: UserRing) -> RingAggregate:
    """The aggregate of a ring, which this process knows from now on. Raises RingDefinitionError."""
    check_form(ring)
    if isinstance(ring.arguments, str):
        raise RingDefinitionError(f"ring {ring.name}: arguments must be a tuple of types, not {ring.arguments!r}")
    arguments = tuple(_type(ring, f"argument {i}", text) for i, text in enumerate(ring.arguments, 1))
    listed = {"": ring.results} if isinstance(ring.results, str) else dict(ring.results)
    if not listed:
        raise RingDefinitionError(f"ring {ring.name}: results is empty; give at least one result, with its type")
    results = tuple((name, _type(ring, f"result {name}".rstrip(), text)) for name, text in listed.items())
    if ring.value is None and any(of.is_float for _, of in results):
        raise RingDefinitionError(
            f"ring {ring.name}: give value=, which computes a DOUBLE result from the integer words of an element"
        )
    if ring.value is None and len(results) != ring.words:
        raise RingDefinitionError(
            f"ring {ring.name}: an element has {ring.words} words, and {len(results)} results are declared; give "
            "value=, which computes the results from the words, or declare one result per word"
        )
    made = recorded(ring, [*map(_kind, arguments)], [_kind(of) for _, of in results])
    aggregate = RingAggregate(ring.name, arguments, results, isinstance(ring.results, str), made)
    remember(aggregate)
    return aggregate


def remember(aggregate: RingAggregate) -> None:
    """Make the ring of an aggregate known to this process without registering it."""
    know(aggregate.ring)
    _of_family[aggregate.family] = aggregate


def aggregate_of(ring: RecordedRing) -> RingAggregate:
    """The aggregate that a ring was registered or stored with."""
    return _of_family[ring.family]


@contextmanager
def known_as(aggregates: Mapping[str, RingAggregate]) -> Iterator[None]:
    """Within the context, these lower-case names mean these aggregates, whatever this process has registered."""
    token = _of_checkpoint.set(aggregates)
    try:
        yield
    finally:
        _of_checkpoint.reset(token)


def aggregate_over(name: str) -> RingAggregate | None:
    """The aggregate of a registered ring, by its name in any spelling; None if unknown. Raises RingDefinitionError if a
    module that registers rings cannot be imported."""
    kept = _of_checkpoint.get().get(name.lower())
    if kept is not None:
        return kept
    if MODULES in os.environ:
        _import_modules(os.environ[MODULES])
    return _registered.get(name.lower())


def aggregates_over() -> tuple[str, ...]:
    """The names of all registered rings, in lower case."""
    return tuple(_registered)


def _import_modules(names: str) -> None:
    """Import modules that register rings, each once."""
    for name in filter(None, map(str.strip, names.split(","))):
        if name in _imported:
            continue
        _imported.add(name)
        try:
            importlib.import_module(name)
        except RingDefinitionError:
            raise
        except Exception as error:
            raise RingDefinitionError(
                f"{MODULES} names the module {name}, which cannot be imported: {type(error).__name__}: {error}; put "
                "the module on the Python path of this process"
            ) from error


def rings_of(blocks: Iterable[Block]) -> tuple[RecordedRing, ...]:
    """The users' rings of the aggregates of blocks, each once."""
    names = (aggregate.ring for block in blocks for aggregate in block.query.aggregates)
    families = dict.fromkeys(name.partition("(")[0] for name in names)
    return tuple(ring for ring in map(family_named, families) if ring is not None)


def _kind(of: SqlType) -> str:
    return REAL if of.is_float else WHOLE


def _type(ring: UserRing, what: str, text: str) -> SqlType:
    spelled = text.strip().upper() if isinstance(text, str) else ""
    found = _DECIMAL.fullmatch(spelled)
    if found is not None:
        precision, scale = int(found[1]), int(found[2] or 0)
        if 1 <= precision <= _GREATEST_PRECISION and scale <= precision:
            return decimal(precision, scale)
    if spelled not in _TYPES:
        names = ", ".join((*_TYPES, f"DECIMAL(p, s) with p up to {_GREATEST_PRECISION}"))
        raise RingDefinitionError(f"ring {ring.name}: {what} is of type {text!r}; accepted: {names}")
    return _TYPES[spelled]
