"""Maintenance by trace, as the interpreter does it: edits of views in, a batch of derivations out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from freshviews.program.incremental.maintenance import Maintained
from freshviews.program.payloads import Key, Payload
from freshviews.program.traced import Traced
from freshviews.ring import INTEGER

Batch = list[tuple[Mapping[str, int], int]]


class Tracing:
    """The trace of one join of a program."""

    def __init__(self, traced: Traced) -> None:
        self.traced = traced
        self.maintained = Maintained(traced.rule, INTEGER)

    def derivations(self, views: Mapping[str, Mapping[Key, Payload]], clear: Callable[[str], None]) -> Batch:
        """What the edits erase and insert; ``clear`` empties a view."""
        edits = {view: {key: payload[0] for key, payload in views[edit].items()} for view, edit in self.traced.edits}
        for _, edit in self.traced.edits:
            clear(edit)
        delta = self.maintained.apply(edits)
        return [*self._rows(delta.erased, -1), *self._rows(delta.inserted, 1)]

    def _rows(self, derivations: tuple[tuple[Key, int], ...], sign: int) -> Iterator[tuple[Mapping[str, int], int]]:
        order = self.traced.rule.order
        return ((dict(zip(order, binding, strict=True)), sign * times) for binding, times in derivations)
