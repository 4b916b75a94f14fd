"""Holds what an open database has of one view: its definition, its maintained rows, and the views that read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from freshviews.catalog.definitions import ViewDef
from freshviews.engine.change import Follower
from freshviews.engine.codes.code_batch import CodeBatch, Codes
from freshviews.engine.codes.decoding import Decoder
from freshviews.engine.reading import Readers
from freshviews.engine.views.contents import contents_of, in_order
from freshviews.engine.views.maintained import MaintainedView
from freshviews.errors import EvaluationError


@dataclass(eq=False)
class ViewState:
    """A public or internal view."""

    definition: ViewDef
    maintained: MaintainedView
    decoder: Decoder
    dependents: tuple[ViewState, ...] = ()
    """Views that read this one."""
    ordered_from: ViewState | None = None
    """The view with the columns of its ORDER BY: itself or an internal one; None without an order."""
    is_stored: bool = True
    wants_change: bool = False
    """Whether the change of each version is taken: a view or a subscriber reads it, or computing it may fail."""
    subscriptions: list[Follower] = field(default_factory=list)
    followers: int = 0
    """Number of open iterators of ``apply_in_order`` and ``apply_net`` over this view."""
    readers: Readers = field(default_factory=Readers)
    counted: Codes = field(default_factory=lambda: np.zeros(1, np.int64))
    """One word: the number of updates."""
    seconds: float = 0.0
    pace: float = 0.0
    """Seconds per row of the last version of many rows; see ``engine.commit.threads``."""
    closed: bool = False
    changes_of: ClassVar[str] = "change of view"

    @property
    def updates(self) -> int:
        """The number of rows inserted or deleted."""
        return int(self.counted[0])

    @property
    def name(self) -> str:
        return self.definition.name

    def batches(self, rows: int) -> Iterator[CodeBatch]:
        """The contents with multiplicities. EvaluationError if an output column cannot be computed."""
        return contents_of(self.maintained, rows)

    def ordered(self, rows: int) -> Iterator[CodeBatch]:
        """As ``batches``, in the order of the view's ORDER BY if it has one."""
        order = self.definition.order
        source = self.ordered_from
        if order is None or source is None:
            return self.batches(rows)
        return in_order(self.maintained, source.maintained, order, rows)

    def want_change(self) -> None:
        """Set ``wants_change`` after the readers of the view have changed."""
        wanted = bool(self.dependents or self.subscriptions or self.followers) or self.maintained.may_fail_in_output
        self.wants_change = self.maintained.wants_change = wanted

    def take_over(self, other: ViewState) -> None:
        """Swap definition and programs with another view of the same rows."""
        self.definition, other.definition = other.definition, self.definition
        self.maintained, other.maintained = other.maintained, self.maintained
        self.counted += other.counted
        self.seconds += other.seconds

    def stats(self) -> dict[str, Any]:
        try:
            rows: int | None = sum(int(batch.multiplicities.sum()) for batch in self.batches(1 << 16))
        except EvaluationError:
            rows = None
        return {
            "rows": rows,
            "bytes": self.maintained.bytes(),
            "strategy": ", ".join(self.maintained.strategies),
            "double_sums": ", ".join(self.maintained.sums) or None,
            "updates": self.updates,
            "seconds": self.seconds,
        }

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            for one in self.subscriptions:
                one.end()
            self.maintained.close()
