"""Reports the progress of calls that take long: a wait for the compiler, a load of many rows, a backfill."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from types import TracebackType
from typing import Any, Literal, Protocol

from freshviews.printable import cell
from freshviews.records import dataclass

VARIABLE = "FRESHVIEWS_PROGRESS"
"""The environment variable with the setting of databases that have none: 0 for False, 1 for True."""

Phase = Literal["compile", "read", "encode", "update", "backfill", "join"]

_WORDS: dict[Phase, tuple[str, str]] = {
    "compile": ("compiling", "compiled"),
    "read": ("reading", "read"),
    "encode": ("encoding", "encoded"),
    "update": ("updating", "updated"),
    "backfill": ("backfilling", "backfilled"),
    "join": ("joining", "joined"),
}
"""A phase while it runs, and after it."""

_SOON = 1.0
"""Seconds after which a task is shown."""

_OFTEN = 0.1
"""Least seconds between two reports of a task, except its first and its last one."""

_SELDOM = 10.0
"""Least seconds between two records of a task in the log."""

_BAR = 20
"""Characters of a bar."""

_logger = logging.getLogger("freshviews")


@dataclass(frozen=True)
class Progress:
    """How far a call of a database is, for the callable of ``Database(progress=...)``.

    Attributes
    ----------
    phase
        ``"compile"``: the call waits for machine code. ``"read"``: rows are taken from an iterable or a reader.
        ``"encode"``: rows are checked and encoded. ``"update"``: views take the rows. ``"backfill"``: a new view takes
        the rows of its inputs. ``"join"``: a new view joins them.
    name
        The tables or views, with commas between.
    done
        Rows, or functions in phase ``"compile"``, that are done. A backfill in passes counts the rows of each pass.
    total
        Rows or functions in all; None if it is not known.
    seconds
        Since the phase began.

    Examples
    --------
    >>> str(fv.Progress("encode", "items", 3_000_000, 3_000_000, 1.5))
    'encoded items: 3,000,000 rows in 1.5 s, 2,000,000 rows/s'
    """

    phase: Phase
    name: str
    done: int
    total: int | None
    seconds: float

    @property
    def rate(self) -> float:
        """Rows or functions per second."""
        return self.done / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        unit = "functions" if self.phase == "compile" else "rows"
        ended = self.done == self.total
        what = " ".join(filter(None, (_WORDS[self.phase][ended], self.name)))
        if ended:
            text = f"{what}: {self.done:,} {unit} in {self.seconds:.1f} s"
        else:
            text = f"{what}: {self.done:,} {unit if self.total is None else f'of {self.total:,} {unit}'}"
        if self.phase == "compile":
            return text if ended else f"{text}; once per machine"
        return f"{text}, {self.rate:,.0f} rows/s" if self.done else text


Setting = bool | Callable[[Progress], object] | None


class Reporter:
    """Where a database reports progress. ``setting``: of ``Database(progress=...)``; None reports only waits for the
    compiler, unless the environment says otherwise. ``subject``: the view that is being made.

    Work is a ``Task`` of the ``Reporter`` of its database. A wait for the compiler that takes more than a second is
    reported as one line, on standard error if that is a terminal, or in the notebook. The logger ``freshviews`` also
    gets a record at INFO. Loads and backfills are reported only if the user asks for it.
    """

    def __init__(self, setting: Setting = None) -> None:
        if setting is None:
            setting = {"0": False, "1": True}.get(os.environ.get(VARIABLE, ""))
        self.setting = setting
        self.subject = ""

    @property
    def shows_rows(self) -> bool:
        """Whether loads and backfills are reported."""
        return self.setting is True or callable(self.setting)

    def rows(self, phase: Phase, name: str, total: int | None) -> Task:
        """A task over rows; it is silent if they are not reported."""
        return Task(self if self.shows_rows else SILENT, phase, name, total)


class Task:
    """Work of a phase, within its ``with`` block, which may be entered again.

    ``total`` and ``done``: as in ``Progress``. Without a total, a task that makes no step is not reported.
    """

    def __init__(self, reporter: Reporter, phase: Phase, name: str, total: int | None) -> None:
        self._reporter = reporter
        self._phase = phase
        self.name = name
        self.total = total
        self.done = 0
        self._start = self._reported = self._logged = time.monotonic()
        self._line: Line | None = None

    @property
    def is_shown(self) -> bool:
        """Whether the task takes so long that it is shown."""
        return time.monotonic() - self._start >= _SOON

    def __enter__(self) -> Task:
        if self.total is not None:
            self._report(first=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: BaseException | TracebackType | None) -> None:
        if kind is None and (self.total is not None or self.done):
            self.done = self.total = self.done if self.total is None else self.total
            self._report(last=True)
        if self._line is not None:
            self._line.end(kept=self._phase != "compile")

    def step(self, done: int) -> None:
        """Report that this much is done, if it is time."""
        self.done = done
        if done != self.total and time.monotonic() - self._reported >= _OFTEN:
            self._report()

    def _report(self, first: bool = False, last: bool = False) -> None:
        to = self._reporter.setting
        if to is False:
            return
        self._reported = now = time.monotonic()
        seconds = now - self._start
        made = Progress(self._phase, self.name, self.done, self.total, seconds)
        if callable(to) and (self._phase != "compile" or seconds >= _SOON):
            try:
                to(made)
            except Exception:
                self._reporter.setting = False
                _logger.warning("the progress callable raised an error, and is not called again", exc_info=True)
        if seconds < _SOON or first:
            return
        if self._logged == self._start or now - self._logged >= (_SOON if last else _SELDOM):
            self._logged = now
            _logger.info("%s", made)
        if not callable(to):
            self._line = self._line or line()
            if self._line is not None:
                self._line.show(made)


SILENT = Reporter(False)


def line() -> Line | None:
    """The line that shows a task: in a notebook or on a terminal; None if there is neither."""
    interactive = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive is not None else None
    if getattr(shell, "kernel", None) is not None:
        return NotebookLine()
    try:
        return TerminalLine() if sys.stderr.isatty() else None
    except (AttributeError, ValueError):  # There is no standard error, or it is closed.
        return None


class Line(Protocol):
    """One line that is updated."""

    def show(self, made: Progress) -> None:
        """Write progress in the place of what the line shows."""

    def end(self, kept: bool) -> None:
        """End the line. One that is not kept is erased."""


class TerminalLine:
    """The last line of standard error, if that is a terminal."""

    def show(self, made: Progress) -> None:
        text, width = cell(made), _width()
        encoding = sys.stderr.encoding or "ascii"
        if made.total and made.done < made.total and len(text) + 1 + _BAR <= width:
            full = _BAR * made.done // made.total
            mark = "━" if "utf" in encoding.lower() else "="
            text = f"{(mark * full).ljust(_BAR)} {text}"
        self._write(f"\r{text[:width].encode(encoding, 'replace').decode(encoding)}\x1b[K")

    def end(self, kept: bool) -> None:
        self._write("\n" if kept else "\r\x1b[K")

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):  # If the terminal is gone, the work goes on.
            sys.stderr.write(text)
            sys.stderr.flush()


def _width() -> int:
    """Characters of a line; the last column stays free, because some terminals break the line there."""
    try:
        return max((os.get_terminal_size(sys.stderr.fileno()).columns or 80) - 1, 20)
    except (OSError, ValueError):
        return 79


class NotebookLine:
    """An output of the running cell of a notebook."""

    def __init__(self) -> None:
        self._shown: Any = None

    def show(self, made: Progress) -> None:
        bundle = {"text/plain": cell(made)}
        if self._shown is None:
            self._shown = import_module("IPython.display").display(bundle, raw=True, display_id=True)
        else:
            self._shown.update(bundle, raw=True)

    def end(self, kept: bool) -> None:
        """The output stays, because an empty one would leave a gap."""
