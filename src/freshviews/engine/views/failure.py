"""Why a view could not be computed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Failure:
    """Why a batch cannot stand. ``row`` is its position in the batch, None where unknown."""

    kind: str
    message: str
    row: int | None = None
