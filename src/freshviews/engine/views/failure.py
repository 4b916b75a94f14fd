"""Why a view could not be computed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Failure:
    """Why a batch or a read is refused.

    ``kind`` is "evaluation", "memory", or "narrow" where narrow sums of doubles cannot take the batch. ``row`` is a
    position in the batch, None where unknown.
    """

    kind: str
    message: str
    row: int | None = None


class Failed(Exception):
    """A view could not be computed; the status word of its blocks is reset."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure
