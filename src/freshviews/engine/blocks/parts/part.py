"""Defines the base class of parts. A part is what a block stores besides its tables, such as a threshold or a trace.

Methods of a part are called after each batch, at the end of a version, and when an image is written or read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from freshviews.codegen.module import Compiled
from freshviews.engine.codes.code_batch import Codes
from freshviews.program.program import Program
from freshviews.types.dictionary import Dictionary


class Owner(Protocol):
    """The state of a block (``engine.blocks.runtime``), as its parts see it. A part keeps no reference to it, so that
    it can be collected. ``rows_read``: rows read of a result that is not held."""

    program: Program
    dictionary: Dictionary
    words: Codes
    status: Codes
    rows_read: int

    def handles(self) -> dict[str, int]: ...

    def run_triggers(
        self, relation: str, columns: dict[str, tuple[int, int]], m: tuple[int, int], n: int
    ) -> None: ...


class Part:
    """The base of the kinds of parts: every method does nothing. ``calls``: the kernels that its methods call."""

    calls: Sequence[Compiled] = ()

    def after(self, owner: Owner, n: int) -> None:
        """Called after the triggers of a batch of ``n`` rows."""

    def changes_less(self, owner: Owner, n: int) -> bool:
        """Whether any ``n`` updates change only the views that the statements of their trigger name."""
        return True

    def end_version(self, owner: Owner) -> None:
        """Called after the last batch of a version, for programs that need it (``program.upkeep.Traced``)."""

    def clear(self) -> None:
        """Called when the tables were emptied."""

    def close(self) -> None:
        """Free all memory; ``clear`` makes the part usable again."""

    def sizes(self) -> Mapping[str, tuple[int, int]]:
        """Rows and bytes that the part stores, by name."""
        return {}

    def described(self, owner: Owner) -> list[str]:
        """Texts for EXPLAIN."""
        return []

    def image(self) -> dict[str, Any]:
        """The part's entries in an image of the view, by names of its own, as JSON."""
        return {}

    def restore(self, owner: Owner, image: Mapping[str, Any]) -> None:
        """Continue with the tables of an image; the part was cleared before. ``image``: entries of parts."""
