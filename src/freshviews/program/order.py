"""Orders of rows, and the statements that read them: for MIN, MAX, BIT_AND and the like, and ``ORDER BY ... LIMIT``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from freshviews.types import SqlType

if TYPE_CHECKING:
    from freshviews.program.nodes import Statement

    Body = tuple[Statement, ...]

@dataclass(frozen=True)
class Order:
    """How the codes of a type are ordered."""

    type: SqlType
    descending: bool = False
    nulls_last: bool = False

    def __str__(self) -> str:
        # NULL is the least value where nothing is said.
        nulls = "" if self.nulls_last == self.descending else " nulls last" if self.nulls_last else " nulls first"
        return (" desc" if self.descending else "") + nulls


@dataclass(frozen=True)
class Scan:
    """Set a component of ``view[key]`` to what the rows ``source[within, ...]`` come to in a semigroup.

    Where ``source`` keeps them in order of all words after ``within``, ``kind`` is ``min`` or ``min_by``, ``max`` or
    ``max_by``: the last word of the first row, or of the last. Or it is a fold that ``source`` keeps, of the last
    words: ``bit_and`` or ``bit_or``, and where ``within`` is shorter, ``min`` or ``max`` in their order. The component
    becomes zero where no row is left. The row of ``view`` is made where there was none.
    """

    view: str
    key: tuple[str, ...]
    component: str
    source: str
    within: tuple[str, ...]
    kind: str


@dataclass(frozen=True)
class Top:
    """The row known by ``alias``, of a view whose whole key is in order, has just grown: its count by ``grown``.

    The rows of the view, in order and each as often as it counts, are a sequence. The body runs for each row of which
    copies thereby come among those from place ``first`` up to ``last``, or go: ``key`` is bound to its words,
    ``change`` to how many come; a row may come up several times. It runs within appear, vanish or stay of the Add.
    """

    alias: str
    grown: str
    first: int
    last: int
    key: tuple[str, ...]
    change: str
    body: Body


def is_always(appear: Body, vanish: Body, stay: Body) -> bool:
    """Whether a Top follows an Add whatever became of its row, so that it is printed and written once."""
    return bool(stay) and isinstance(stay[0], Top) and appear == vanish == stay
