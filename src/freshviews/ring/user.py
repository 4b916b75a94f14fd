"""Defines rings that users write as Python functions over integers.

The functions are recorded as formulas, and tested against the laws of rings.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

from freshviews.errors import RingDefinitionError
from freshviews.records import dataclass
from freshviews.ring.formula import REAL, WHOLE, Formula
from freshviews.ring.laws import BrokenLaw, check
from freshviews.ring.protocol import RingError
from freshviews.ring.recording import RecordingError, numbers, record

MOST_WORDS = 64
LEAST_WORDS = 2
"""Words of an element in a row; generated code takes one word alone as an integer of the ring ``integer``."""

_NAME = re.compile(r"([a-z_]\w*\.[0-9a-f]{16})\((\d+(?: \d+)*)\)")
_WRITTEN = re.compile(r"[A-Za-z_]\w*")

Element = tuple[int, ...]


@dataclass(frozen=True)
class UserRing:
    """A commutative ring, and the SQL aggregate of its name (docs/rings.md).

    ``NAME(x1, ..., xn)`` is the sum, over the rows where no argument is NULL, of the product of the lifts of the
    arguments; NULL where there is no such row. Functions take and return elements: tuples of integers, or, of one word,
    an integer. They are recorded once, when the ring is registered (``ring.recording``), so they must be made of
    arithmetic. Zero is 0 in all words.

    Parameters
    ----------
    name
        Name of the aggregate.
    arguments
        SQL type of each argument: BIGINT, DOUBLE or DECIMAL(p, s).
    words
        Integers of 64 bits that an element has, 1 to 64.
    results
        SQL types of the result, BIGINT, DOUBLE or DECIMAL(p, s): of one value, or by name of several, each of which is
        a column.
    lift
        Makes an element of a value; a sequence has one function per argument. It gets a DOUBLE as a float, and a
        DECIMAL as its unscaled integer.
    multiply
        Multiplies two elements; may be left out where there is one argument.
    add
        Adds two elements; by default word by word.
    scale
        ``scale(a, k)`` is a added k times, or subtracted if k is negative; by default each word is multiplied by k.
    one
        The element that multiplies without effect; by default 1 in the first word and 0 in all others.
    value
        Makes the values of an element; by default they are its words.

    Examples
    --------
    >>> ring = fv.UserRing("SUM_OF_SQUARES", ["BIGINT"], words=1, results="BIGINT", lift=lambda x: x * x)
    >>> fv.register_ring(ring)
    """

    name: str
    arguments: Sequence[str]
    words: int
    results: Mapping[str, str] | str
    lift: Callable[..., Any] | Sequence[Callable[..., Any]]
    multiply: Callable[..., Any] | None = None
    add: Callable[..., Any] | None = None
    scale: Callable[..., Any] | None = None
    one: Any = None
    value: Callable[..., Any] | None = None


@dataclass(frozen=True)
class RecordedRing:
    """A user's ring as formulas, over the lifts of the arguments with the numbers ``places``.

    ``size``: the words of an element as its functions have them. ``kinds``: those of the arguments, ``w`` or ``d``.
    """

    label: str
    size: int
    kinds: tuple[str, ...]
    lifts: tuple[Formula, ...]
    product: Formula | None
    sum: Formula
    multiple: Formula
    one: Element
    value: Formula
    places: tuple[int, ...] = ()

    @cached_property
    def family(self) -> str:
        """The name without the places."""
        formulas = (*self.lifts, self.product, self.sum, self.multiple, self.value)
        text = f"{self.size} {self.kinds} {self.one} {[one and one.digest for one in formulas]}"
        return f"{self.label.lower()}.{hashlib.sha256(text.encode()).hexdigest()[:16]}"

    @property
    def name(self) -> str:
        return f"{self.family}({' '.join(map(str, self.places))})"

    @property
    def words(self) -> int:
        return max(self.size, LEAST_WORDS)

    @property
    def zero(self) -> Element:
        return (0,) * self.size

    @property
    def keeps_modulo(self) -> bool:
        """True if arithmetic modulo 2^64 obeys the laws: then negation undoes a batch even after an overflow."""
        parts = (self.sum, self.multiple, *([] if self.product is None else [self.product]))
        return all(one.keeps_modulo for one in parts)

    def add(self, a: Element, b: Element) -> Element:
        return self.sum.compiled(*a, *b)

    def negate(self, a: Element) -> Element:
        return self.scale(a, -1)

    def multiply(self, a: Element, b: Element) -> Element:
        if self.product is None:
            raise RingError(f"the ring {self.label} has no multiply")
        return self.product.compiled(*a, *b)

    def scale(self, a: Element, k: int) -> Element:
        return self.multiple.compiled(*a, k)

    def is_zero(self, a: Element) -> bool:
        return a == self.zero

    def lift(self, code: int) -> Element:
        """The element of a code of the one argument that this ring is over."""
        (place,) = self.places
        return self.lifted(place, code)

    def lifted(self, place: int, code: int) -> Element:
        """The element of a code of an argument. Raises RingError if it has none."""
        number: float = struct.unpack("<d", struct.pack("<q", code))[0] if self.kinds[place] == REAL else code
        return self.lifts[place].compiled(number)

    def values(self, a: Element) -> tuple[float, ...]:
        """The values of a result."""
        return self.value.compiled(*a)

    def to_words(self, a: Element) -> tuple[int, ...]:
        for word in a:
            if not -(2**63) < word < 2**63:
                raise RingError(f"{word} does not fit a word of 64 bits")
        return (*a, *[0] * (self.words - self.size))

    def from_words(self, words: tuple[int, ...]) -> Element:
        return words[: self.size]

    def over(self, places: tuple[int, ...]) -> RecordedRing:
        """The ring over these arguments."""
        return replace(self, places=places)

    def __reduce__(self) -> tuple[Any, ...]:
        # A process that receives the ring, such as a worker, then knows it by its name.
        return _received, tuple(getattr(self, name) for name in self.__dataclass_fields__)


_known: dict[str, RecordedRing] = {}
"""Rings by family. A family names one definition for ever, so nothing here is ever replaced."""


def know(ring: RecordedRing) -> None:
    """Make a ring known to this process by its name."""
    _known.setdefault(ring.family, ring.over(()))


def _received(*parts: Any) -> RecordedRing:
    ring = RecordedRing(*parts)
    know(ring)
    return ring


def family_named(family: str) -> RecordedRing | None:
    """The user's ring of a family, over no argument; None if there is none."""
    return _known.get(family)


@lru_cache(maxsize=4096)
def user_ring_named(name: str) -> RecordedRing | None:
    """The user's ring with a name, or None if the name is of another kind. Raises KeyError if this process does not
    know the ring."""
    found = _NAME.fullmatch(name)
    return None if found is None else _known[found[1]].over(tuple(map(int, found[2].split())))


def check_form(ring: UserRing) -> None:
    """Check the name and the number of words. Raises RingDefinitionError."""
    if not isinstance(ring.name, str) or not _WRITTEN.fullmatch(ring.name):
        raise RingDefinitionError(f"ring {ring.name}: SQL cannot call it by this name; write a name such as GAUSS")
    if not isinstance(ring.words, int) or not 1 <= ring.words <= MOST_WORDS:
        raise RingDefinitionError(f"ring {ring.name}: words={ring.words!r}; an element needs 1 to {MOST_WORDS} words")


def recorded(ring: UserRing, kinds: Sequence[str], results: Sequence[str]) -> RecordedRing:
    """Record a ring, and check its laws. ``kinds`` of the arguments and ``results``: w for integers, d for doubles.

    Raises RingDefinitionError.
    """
    size = ring.words
    if not kinds:
        raise RingDefinitionError(f"ring {ring.name}: arguments is empty; an aggregate takes 1 or more arguments")
    lifts = list(ring.lift) if isinstance(ring.lift, Sequence) else [ring.lift] * len(kinds)
    if len(lifts) != len(kinds):
        raise RingDefinitionError(
            f"ring {ring.name}: {len(lifts)} lifts for {len(kinds)} arguments; give one lift for each argument"
        )
    if ring.multiply is None and len(kinds) > 1:
        raise RingDefinitionError(
            f"ring {ring.name} has {len(kinds)} arguments; give multiply=, which multiplies the lifts of the arguments"
        )
    words = [WHOLE] * size

    def formula(what: str, function: Any, given: Sequence[str], arguments: Any, made: Sequence[str]) -> Formula:
        if not callable(function):
            raise RingDefinitionError(f"ring {ring.name}: {what} must be a function, not {function!r}")
        try:
            return record(function, given, arguments, lambda value: numbers(value, len(made)), made)
        except RecordingError as error:
            raise RingDefinitionError(f"ring {ring.name}: {what} cannot be compiled: {error}") from error

    def element(given: Sequence[Any]) -> Any:
        return given[0] if size == 1 else tuple(given)

    def two(given: Sequence[Any]) -> Sequence[Any]:
        return element(given[:size]), element(given[size:])

    made = RecordedRing(
        label=ring.name,
        size=size,
        kinds=tuple(kinds),
        lifts=tuple(
            formula(f"lift of argument {i}", one, [kind], lambda given: given, words)
            for i, (one, kind) in enumerate(zip(lifts, kinds, strict=True), 1)
        ),
        product=None if ring.multiply is None else formula("multiply", ring.multiply, words * 2, two, words),
        sum=formula("add", ring.add or _add, words * 2, two, words),
        multiple=formula("scale", ring.scale or _scale, [*words, WHOLE], lambda g: (element(g[:-1]), g[-1]), words),
        one=_one(ring),
        value=formula("value", ring.value or _same, words, lambda given: (element(given),), results),
    )
    _check_laws(ring, made)
    know(made)
    return made


def _one(ring: UserRing) -> Element:
    if ring.one is None:
        return (1, *[0] * (ring.words - 1))
    one = (ring.one,) if isinstance(ring.one, int) else tuple(ring.one)
    if len(one) != ring.words or not all(isinstance(word, int) for word in one):
        raise RingDefinitionError(f"ring {ring.name}: one= must be {ring.words} integers, not {ring.one!r}")
    return tuple(map(int, one))


def _add(a: Any, b: Any) -> Any:
    return a + b if not isinstance(a, tuple) else tuple(x + y for x, y in zip(a, b, strict=True))


def _scale(a: Any, k: Any) -> Any:
    return a * k if not isinstance(a, tuple) else tuple(x * k for x in a)


def _same(a: Any) -> Any:
    return a


_SAMPLES = {
    WHOLE: (0, 1, -1, 2, -3, 5, 17, -100, 1_000, 65_537),
    REAL: (0.0, 1.0, -1.0, 0.5, -2.25, 0.1, 3.75, -17.3, 1e3, 1e-9),
}
_REMEDIES = {
    "scale": "give scale=, which adds an element k times, or subtracts it if k is negative",
    "one": "give one=, the element that multiplies without effect",
    "zero": "zero is 0 in all words, so each element must have one form",
}


def _check_laws(ring: UserRing, made: RecordedRing) -> None:
    lifted: list[Element] = []
    for place, kind in enumerate(made.kinds):
        for sample in _SAMPLES[kind]:
            try:
                lifted.append(made.lifts[place].compiled(sample))
            except RingError:
                continue  # The lift is undefined there: a batch with such a value gets an error.
    if not lifted:
        raise RingDefinitionError(
            f"ring {ring.name}: lift fails for every test number, such as {_SAMPLES[made.kinds[0]][0]}; return a "
            "value for at least one test number"
        )
    try:
        check(made.over((0,)), lifted, made.product is not None)
    except BrokenLaw as error:
        remedy = next((text for word, text in _REMEDIES.items() if word in str(error).partition(" does")[0]), "")
        broken = f"ring {ring.name} is not a ring: {error}. Views stay exact by the laws of rings"
        raise RingDefinitionError(f"{broken}; {remedy}" if remedy else broken) from error
    except RingError as error:
        raise RingDefinitionError(
            f"ring {ring.name}: a law cannot be checked: {error}; each function of a ring must have a value for all "
            "elements"
        ) from error
    if made.product is not None:
        _check_fidelity(ring, made, lifted)


def _check_fidelity(ring: UserRing, made: RecordedRing, lifted: Sequence[Element]) -> None:
    """Check that ``multiply`` depends on its arguments alone: that it still returns the recorded values."""
    assert ring.multiply is not None
    for a, b in list(product(lifted, repeat=2))[:: max(1, len(lifted) ** 2 // 50)]:
        given = (a[0], b[0]) if made.size == 1 else (a, b)
        returned = numbers(ring.multiply(*given), made.size)
        if tuple(map(int, returned)) != made.multiply(a, b):
            raise RingDefinitionError(
                f"ring {ring.name}: multiply returned {returned} for {a} and {b}, but {made.multiply(a, b)} when it "
                "was recorded; its result must depend on its arguments alone"
            )
