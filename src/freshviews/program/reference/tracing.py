"""Maintains the traced joins of an interpreted program: finds how a batch of changes alters the rows of each join."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from freshviews.kernel.scalar.payload import PAYLOAD_ERRORS, SUM_OVERFLOW
from freshviews.program.reference.incremental_trie_join.maintenance import MaintainedRule
from freshviews.program.reference.payloads import Key, Payload
from freshviews.program.reference.scalars import ScalarError
from freshviews.program.traced import TracedJoin
from freshviews.ring import INTEGER
from freshviews.types.dictionary import Dictionary

Batch = list[tuple[Mapping[str, int], int]]


class Tracing:
    """The state of one traced join."""

    def __init__(self, traced: TracedJoin, dictionary: Dictionary | None = None) -> None:
        self.traced = traced
        self.maintained = MaintainedRule(traced.rule, INTEGER, dictionary)

    def derivations(self, views: Mapping[str, Mapping[Key, Payload]], clear: Callable[[str], None]) -> Batch:
        """The derivations that the edits erase and insert; ``clear`` empties a view.

        Raises ScalarError if the multiplicity of a derivation does not fit 64 bits.
        """
        edits = {view: {key: payload[0] for key, payload in views[edit].items()} for view, edit in self.traced.edits}
        for _, edit in self.traced.edits:
            clear(edit)
        delta = self.maintained.apply(edits)
        return [*self._rows(delta.erased, -1), *self._rows(delta.inserted, 1)]

    def _rows(self, derivations: tuple[tuple[Key, int], ...], sign: int) -> Iterator[tuple[Mapping[str, int], int]]:
        order = self.traced.rule.order
        for _, times in derivations:
            if abs(times) >= 2**63:
                raise ScalarError(PAYLOAD_ERRORS[SUM_OVERFLOW])
        return ((dict(zip(order, binding, strict=True)), sign * times) for binding, times in derivations)
