"""Defines the layout of memory: the words of a program's state and of the rows of its views.

::

    state     status | changes buffer | changes wanted | constants | a table per view | scratch blocks |
              balance of heavy and light values | default rows of optional views
    status    error code | first failing row | number of steps | address of the shapes, words that kernels read
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from freshviews.kernel.rings import elements
from freshviews.program.payload import COUNT, Component
from freshviews.program.program import Program
from freshviews.program.views import View
from freshviews.records import dataclass
from freshviews.ring import NARROW, REAL, RINGS, CofactorRing, named
from freshviews.types import NULL

STATUS = 0
CHANGES = 1
WANTED = 2
CONSTANTS = 3
FIRST_TABLE = 4

STATUS_ERROR = 0
STATUS_ROW = 1
STATUS_STEPS = 2
STATUS_SHAPES = 3
STATUS_WORDS = 4


def words_of(component: Component) -> int:
    """Words of a component of a payload."""
    return named(component.ring).words


@dataclass(frozen=True)
class RowLayout:
    """Words of a view's row: key first, then the payload."""

    key: int
    offsets: dict[str, int]
    payload: int


@lru_cache(maxsize=4096)
def row_layout(view: View) -> RowLayout:
    """Word offsets of a view's components within a row."""
    offsets: dict[str, int] = {}
    place = len(view.key)
    for component in view.components:
        offsets[component.name] = place
        place += words_of(component)
    return RowLayout(len(view.key), offsets, place - len(view.key))


def emitted_row(program: Program) -> View:
    """The rows that a program emits, as a view: key and payload."""
    return View("emitted", program.free, program.result.emitted)


def payload_layout(components: Sequence[Component]) -> tuple[int, ...]:
    """The words by which ``kernel.rings.elements`` adds payloads; those of users' rings are added by functions of a
    module (``codegen.writing.payloads.own_rings``)."""
    runs: list[tuple[int, int]] = []
    for component in components:
        ring = named(component.ring)
        if isinstance(ring, CofactorRing) and ring.number == "double":
            runs.append((elements.WIDE, len(ring.variables)))
            continue
        run = (elements.INTEGERS, ring.words)
        if ring is REAL or ring is NARROW:
            run = (elements.REALS if ring is REAL else elements.NARROWS, 1)
        if runs and runs[-1][0] == run[0]:
            run = (run[0], run[1] + runs.pop()[1])
        runs.append(run)
    return (0, len(runs), *(word for run in runs for word in run))


def addable(view: View) -> bool:
    """Whether the rows of a table are added to those of the view by key, payload and indexes alone."""
    plain = not (view.ordered or view.subsets or view.tally or view.running or view.placed)
    return plain and all(one.ring in RINGS or isinstance(named(one.ring), CofactorRing) for one in view.components)


def narrow_runs(components: Sequence[Component]) -> tuple[int, ...]:
    """The words by which ``kernel.rings.narrow`` widens a payload: per component whether it is a narrow sum, and how
    many sums or words it has."""
    runs: list[int] = []
    for component in components:
        ring = named(component.ring)
        runs += (1, 1) if ring is NARROW else (0, ring.words)
    return tuple(runs)


def table_word(program: Program, view: str) -> int:
    """The state word that holds the handle of a view's table."""
    return FIRST_TABLE + program.places[view]


def balance_word(program: Program) -> int:
    """The state word that holds the address of the balance."""
    return table_word(program, program.views[-1].name) + 1 + len(program.long_sums)


def default_word(program: Program, view: str) -> int:
    """The state word that holds the address of the default row of a view."""
    return balance_word(program) + 1 + program.optional.index(view)


def default_row(view: View) -> list[int]:
    """The words of the default row of a view: NULL in the key, a count of 1, 0 in all other components."""
    layout = row_layout(view)
    words = [NULL] * layout.key + [0] * layout.payload
    words[layout.offsets[COUNT]] = 1
    return words


def scratch_words(program: Program) -> dict[tuple[str, str], int]:
    """State words of the scratch blocks: one per accumulator name and component of several words."""
    first = table_word(program, program.views[-1].name) + 1
    return {name: first + i for i, name in enumerate(program.long_sums)}
