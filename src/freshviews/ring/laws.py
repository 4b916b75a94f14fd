"""Lists the laws of rings, such as ``add(a, b) = add(b, a)``, and tests whether a user's ring obeys them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from freshviews.records import dataclass
from freshviews.ring.protocol import Ring, RingError

Side = Callable[[Ring[Any], Any, Any, Any, int, int], Any]


@dataclass(frozen=True)
class Law:
    """Two sides that are equal for all elements a, b, c and integers j, k.

    ``multiplies``: elements are multiplied, which a ring may refuse for some.
    """

    text: str
    left: Side
    right: Side
    multiplies: bool = False


LAWS = (
    Law("add(a, b) = add(b, a)", lambda r, a, b, c, j, k: r.add(a, b), lambda r, a, b, c, j, k: r.add(b, a)),
    Law(
        "add(a, add(b, c)) = add(add(a, b), c)",
        lambda r, a, b, c, j, k: r.add(a, r.add(b, c)),
        lambda r, a, b, c, j, k: r.add(r.add(a, b), c),
    ),
    Law("add(a, zero) = a", lambda r, a, b, c, j, k: r.add(a, r.zero), lambda r, a, b, c, j, k: a),
    Law(
        "add(a, negate(a)) = zero",
        lambda r, a, b, c, j, k: r.add(a, r.negate(a)),
        lambda r, a, b, c, j, k: r.zero,
    ),
    Law("negate(a) = scale(a, -1)", lambda r, a, b, c, j, k: r.negate(a), lambda r, a, b, c, j, k: r.scale(a, -1)),
    Law("scale(a, 0) = zero", lambda r, a, b, c, j, k: r.scale(a, 0), lambda r, a, b, c, j, k: r.zero),
    Law("scale(a, 1) = a", lambda r, a, b, c, j, k: r.scale(a, 1), lambda r, a, b, c, j, k: a),
    Law(
        "scale(a, 3) = add(a, add(a, a))",
        lambda r, a, b, c, j, k: r.scale(a, 3),
        lambda r, a, b, c, j, k: r.add(a, r.add(a, a)),
    ),
    Law(
        "scale(a, j + k) = add(scale(a, j), scale(a, k))",
        lambda r, a, b, c, j, k: r.scale(a, j + k),
        lambda r, a, b, c, j, k: r.add(r.scale(a, j), r.scale(a, k)),
    ),
    Law(
        "scale(scale(a, j), k) = scale(a, j * k)",
        lambda r, a, b, c, j, k: r.scale(r.scale(a, j), k),
        lambda r, a, b, c, j, k: r.scale(a, j * k),
    ),
    Law(
        "scale(add(a, b), k) = add(scale(a, k), scale(b, k))",
        lambda r, a, b, c, j, k: r.scale(r.add(a, b), k),
        lambda r, a, b, c, j, k: r.add(r.scale(a, k), r.scale(b, k)),
    ),
    Law(
        "is_zero(a) where a = zero, and nowhere else",
        lambda r, a, b, c, j, k: r.is_zero(a),
        lambda r, a, b, c, j, k: a == r.zero,
    ),
    Law(
        "from_words(to_words(a)) = a",
        lambda r, a, b, c, j, k: r.from_words(r.to_words(a)),
        lambda r, a, b, c, j, k: a,
    ),
    Law(
        "is_zero(a) where all words of a are zero, and nowhere else",
        lambda r, a, b, c, j, k: r.is_zero(a),
        lambda r, a, b, c, j, k: not any(r.to_words(a)),
    ),
    Law(
        "multiply(a, b) = multiply(b, a)",
        lambda r, a, b, c, j, k: r.multiply(a, b),
        lambda r, a, b, c, j, k: r.multiply(b, a),
        True,
    ),
    Law(
        "multiply(a, multiply(b, c)) = multiply(multiply(a, b), c)",
        lambda r, a, b, c, j, k: r.multiply(a, r.multiply(b, c)),
        lambda r, a, b, c, j, k: r.multiply(r.multiply(a, b), c),
        True,
    ),
    Law(
        "multiply(a, one) = a",
        lambda r, a, b, c, j, k: r.multiply(a, r.one),
        lambda r, a, b, c, j, k: a,
        True,
    ),
    Law(
        "multiply(a, zero) = zero",
        lambda r, a, b, c, j, k: r.multiply(a, r.zero),
        lambda r, a, b, c, j, k: r.zero,
        True,
    ),
    Law(
        "multiply(a, add(b, c)) = add(multiply(a, b), multiply(a, c))",
        lambda r, a, b, c, j, k: r.multiply(a, r.add(b, c)),
        lambda r, a, b, c, j, k: r.add(r.multiply(a, b), r.multiply(a, c)),
        True,
    ),
    Law(
        "scale(a, k) = multiply(a, scale(one, k))",
        lambda r, a, b, c, j, k: r.scale(a, k),
        lambda r, a, b, c, j, k: r.multiply(a, r.scale(r.one, k)),
        True,
    ),
)
"""All laws. ``=`` is Python's ==."""

_TRIALS = 100
_INTEGERS = (0, 1, -1, 2, -2, 3, 5, -7, 12, 101)


class BrokenLaw(RingError):
    """A law does not hold; the message names it, and elements for which it does not."""


def check(ring: Ring[Any], lifted: Sequence[Any], multiplies: bool) -> None:
    """Check the laws over ``lifted`` elements, and sums and products of them. Raises BrokenLaw.

    ``multiplies``: the ring has products, with ``one``.
    """
    random = Random(ring.name)
    elements = _fitting(ring, [ring.zero, *([ring.one] if multiplies else []), *lifted])
    for _ in range(_TRIALS):
        made = random.choice(elements)
        for _ in range(random.randrange(3)):
            other = random.choice(elements)
            times = multiplies and random.random() < 0.5
            made = ring.multiply(made, other) if times else ring.add(made, ring.scale(other, random.choice(_INTEGERS)))
        elements += _fitting(ring, [made])
    first = elements[: len(lifted) + 2]
    for law in LAWS:
        if law.multiplies and not multiplies:
            continue
        for trial in range(2 * _TRIALS):
            # Small elements first: a counterexample is then easy to read.
            a, b, c = (random.choice(first if trial < _TRIALS else elements) for _ in range(3))
            j, k = random.choice(_INTEGERS), random.choice(_INTEGERS)
            left, right = law.left(ring, a, b, c, j, k), law.right(ring, a, b, c, j, k)
            if left != right:
                names = law.text.replace("(", " ").replace(")", " ").replace(",", " ").split()
                values = {"a": a, "b": b, "c": c, "j": j, "k": k}
                where = ", ".join(f"{name} = {value}" for name, value in values.items() if name in names)
                raise BrokenLaw(f"{law.text} does not hold for {where}: the sides are {left} and {right}")


def _fitting(ring: Ring[Any], elements: Sequence[Any]) -> list[Any]:
    """The elements whose words fit."""
    found = []
    for element in elements:
        try:
            ring.to_words(element)
        except RingError:
            continue
        found.append(element)
    return found
