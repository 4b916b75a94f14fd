"""Where things lie: the words of a program's state, of its batches, and of its rows.

State words: status, changes buffer, whether changes are wanted, constants, then a table per view, then a
scratch block per real accumulator. Status words: error code, first row at fault, steps counted.
"""

from __future__ import annotations

from dataclasses import dataclass

from freshviews.program.nodes import Component, Program, View
from freshviews.ring import RINGS

STATUS = 0
CHANGES = 1
WANTED = 2
CONSTANTS = 3
FIRST_TABLE = 4

STATUS_ERROR = 0
STATUS_ROW = 1
STATUS_STEPS = 2
STATUS_WORDS = 3


def words_of(component: Component) -> int:
    """Words of a component of a payload."""
    return RINGS[component.ring].words


@dataclass(frozen=True)
class RowLayout:
    """Words of a view's row: key first, then the payload."""

    key: int
    offsets: dict[str, int]
    payload: int


def row_layout(view: View) -> RowLayout:
    """Word offsets of a view's components within a row."""
    offsets: dict[str, int] = {}
    place = len(view.key)
    for component in view.components:
        offsets[component.name] = place
        place += words_of(component)
    return RowLayout(len(view.key), offsets, place - len(view.key))


def table_word(program: Program, view: str) -> int:
    """Which state word holds the handle of a view's table."""
    return FIRST_TABLE + [v.name for v in program.views].index(view)
