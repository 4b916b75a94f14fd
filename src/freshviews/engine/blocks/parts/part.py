"""A part: something that a program needs beside its tables, as an object that the program's state runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from freshviews.engine.codes.code_batch import Codes
from freshviews.program.program import Program
from freshviews.types.dictionary import Dictionary


class Owner(Protocol):
    """The state of a block (``engine.blocks.runtime``), as its parts see it. No part holds it, so that it is collected
    once nobody else does. ``rows_read``: rows that were read of a result that is not held."""

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
    """Does nothing; a kind of part does what it has to."""

    def after(self, owner: Owner, n: int) -> None:
        """Do what follows the triggers of a batch of ``n`` rows."""

    def end_version(self, owner: Owner) -> None:
        """Do what follows the last batch of a version, where the program says so (``program.upkeep.Traced``)."""

    def clear(self) -> None:
        """Go on with empty tables."""

    def close(self) -> None:
        """Give all memory back; without ``clear`` the part is not used any more."""

    def sizes(self) -> Mapping[str, tuple[int, int]]:
        """Rows and bytes of what it holds, by name."""
        return {}

    def described(self, owner: Owner) -> list[str]:
        """Texts for EXPLAIN."""
        return []

    def image(self) -> dict[str, Any]:
        """The entries of an image of the view, by names of its own, as JSON."""
        return {}

    def restore(self, owner: Owner, image: Mapping[str, Any]) -> None:
        """Go on with the tables of an image; the part was cleared before. ``image``: what parts had in it, or less."""
