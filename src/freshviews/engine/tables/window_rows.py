"""Stores the rows of a table with a window, in the order in which the window will delete them."""

from __future__ import annotations

import numpy as np

from freshviews.catalog.window import Window
from freshviews.engine.codes.code_batch import Codes

_LEAST = 1024


class WindowRows:
    """Rows in the order in which they leave, shape (n, columns)."""

    def __init__(self, window: Window, columns: tuple[str, ...]) -> None:
        self.window = window
        self.columns = columns
        self.rows: Codes = np.empty((0, len(columns)), np.int64)
        self.now = -(2**62)
        """The latest time so far."""
        self._first = 0
        self._buffer: Codes = np.empty((_LEAST, len(columns)), np.int64)

    def keep(self, left: int, come: Codes) -> None:
        """Drop the rows before ``left``, and insert ``come`` at the end or by time."""
        count = len(self.rows) - left + len(come)
        at = self._first + left
        late = bool(self.window.column) and count > len(come) > 0 and self._earliest(come) < self._time(self.rows[-1])
        if late or at + count > len(self._buffer):
            merged = np.concatenate([self.rows[left:], come])
            if self.window.column:
                merged = merged[np.argsort(merged[:, self.columns.index(self.window.column)], kind="stable")]
            self._buffer = np.empty((max(2 * count, _LEAST), len(self.columns)), np.int64)
            self._buffer[:count] = merged
            at = 0
        else:
            if self.window.column and len(come) > 1:
                come = come[np.argsort(come[:, self.columns.index(self.window.column)], kind="stable")]
            self._buffer[at + count - len(come) : at + count] = come
        self._first = at
        self.rows = self._buffer[at : at + count]

    def _time(self, row: Codes) -> int:
        return int(row[self.columns.index(self.window.column)])

    def _earliest(self, rows: Codes) -> int:
        return int(rows[:, self.columns.index(self.window.column)].min())
