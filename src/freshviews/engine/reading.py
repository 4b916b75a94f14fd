"""Reads the rows of a relation at one version. Before a commit changes the relation, the open readers copy the rows
that they have not read yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from threading import RLock
from weakref import WeakSet

import numpy as np

from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.engine.codes.marks import keep_strings
from freshviews.engine.codes.words import address
from freshviews.types.dictionary import Dictionary


class Reader:
    """Batches of one version of a relation, one after the other."""

    def __init__(
        self, source: Callable[[], Iterator[CodeBatch]], readers: Readers, lock: RLock, dictionary: Dictionary
    ) -> None:
        """``source`` starts the scan of the live state; it is called here, with the lock held."""
        self._lock = lock
        self._dictionary = dictionary
        self._drained: deque[CodeBatch] = deque()
        self._failure: Exception | None = None
        self._live: Iterator[CodeBatch] | None = source()
        readers.add(self)

    def __iter__(self) -> Iterator[CodeBatch]:
        return self

    def __next__(self) -> CodeBatch:
        with self._lock:
            if self._drained:
                return self._drained.popleft()
            if self._failure is not None:
                raise self._failure
            if self._live is None:
                raise StopIteration
            try:
                return keep_strings(next(self._live), self._dictionary)
            except StopIteration:
                self._live = None
                raise

    def drain(self) -> None:
        """Read the rest into memory; called with the lock held. The reader raises an error of this later."""
        if self._live is not None:
            try:
                self._drained.extend(keep_strings(batch, self._dictionary) for batch in self._live)
            except Exception as error:
                self._failure = error
            self._live = None


class Readers:
    """The possibly open readers of a relation. ``word`` is the address of a word that is 0 without readers."""

    def __init__(self) -> None:
        self._known: WeakSet[Reader] = WeakSet()
        self._any = np.zeros(1, np.int64)
        self.word = address(self._any)

    def add(self, reader: Reader) -> None:
        self._known.add(reader)
        self._any[0] = 1

    def drain(self) -> None:
        """Have every open reader read the rest of its version into memory."""
        if self._any[0]:
            for reader in list(self._known):
                reader.drain()
            self._known.clear()
            self._any[0] = 0
