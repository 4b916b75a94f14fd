"""Defers signals such as Ctrl-C while a commit runs a step that must not end halfway."""

from __future__ import annotations

import signal
import threading
from _signal import getsignal as handler_of  # type: ignore[import-not-found]
from _signal import signal as set_handler
from types import FrameType, TracebackType
from typing import Any, NoReturn

from freshviews.errors import FreshviewsError, InterruptedAfterCommit
from freshviews.kernel.machine.interruption import INTERRUPTION

_SIGINT = int(signal.SIGINT)
_NAMES = ("SIGINT", "SIGTERM", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGVTALRM", "SIGPROF", "SIGQUIT", "SIGBREAK")
_SIGNALS = tuple(int(getattr(signal, name)) for name in _NAMES if hasattr(signal, name))
"""Signals for which programs install handlers."""
_DEFAULT = int(signal.SIG_DFL)
_USUAL = [signal.default_int_handler, *[_DEFAULT] * (len(_SIGNALS) - 1)]
"""The default handlers of Python."""
_ONE = [(_SIGINT, signal.default_int_handler)]
_INSIDE = (
    "a function that the database calls, or a signal handler, changes the database in the middle of a change; defer "
    "the work until that change has ended"
)


def after_commit(
    error: KeyboardInterrupt, version: int, done: str = "the batch is in"
) -> InterruptedAfterCommit:
    """The interrupt that says that a version counts, and what is in it; notes that a subscriber's change added stay."""
    late = InterruptedAfterCommit(version).with_traceback(error.__traceback__)
    for note in (f"{done}: version {version}", *getattr(error, "__notes__", ())):
        late.add_note(note)
    return late


class Step:
    """Whether a database is within a step that must be whole. One thread at a time begins a step."""

    __slots__ = ("entered",)

    def __init__(self) -> None:
        self.entered = False

    def refuse(self) -> NoReturn:
        """Raise the error for a step within a step."""
        raise FreshviewsError(_INSIDE)


class Uninterrupted:
    """A context that defers signal handlers, in the main thread, until its end.

    Python runs handlers between any two of its operations, and their exceptions would end a step halfway. At the end
    the original handlers are restored, and called if their signals came: that of SIGINT mostly raises
    KeyboardInterrupt. If it is Python's own, the step may end earlier (``kernel.machine.interruption``). Other threads
    never run handlers, so nothing is deferred there.

    ``step``: a nested step raises FreshviewsError. ``unchanged``: the step may end wherever it looks, until
    ``commit`` changes something.
    """

    __slots__ = ("_before", "_pending", "_step", "_unchanged")

    def __init__(self, step: Step | None = None, unchanged: bool = False) -> None:
        self._step = step
        self._unchanged = unchanged
        self._before: list[tuple[int, Any]] = []
        """The original handlers by signal, SIGINT first; read before other handlers can run."""
        self._pending: dict[int, FrameType | None] = {}

    def __enter__(self) -> None:
        if self._step is not None and self._step.entered:
            self._step.refuse()
        if threading.current_thread() is threading.main_thread():
            # signal.getsignal converts to enumerations, which takes longer than a small batch.
            found = [*map(handler_of, _SIGNALS)]
            if found == _USUAL:
                self._before = _ONE
                set_handler(_SIGINT, self._put_off)
            else:
                self._put_all_off(found)
            INTERRUPTION.asked = 0
            INTERRUPTION.unchanged = threading.get_ident() if self._unchanged else 0
        if self._step is not None:
            self._step.entered = True

    def _put_all_off(self, found: list[Any]) -> None:
        try:
            for number, before in zip(_SIGNALS, found, strict=True):
                # None: a handler that was not installed from Python; it is left alone, except for Ctrl-C.
                if callable(before) or number == _SIGINT:
                    self._before.append((number, before))
                    set_handler(number, self._put_off)
        except BaseException:
            # A handler ran before it was deferred.
            self._put_back()
            raise

    def _put_off(self, number: int, frame: FrameType | None) -> None:
        self._pending[number] = frame
        if number == _SIGINT and self._before[0][1] is signal.default_int_handler:
            INTERRUPTION.asked = threading.get_ident()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._step is not None:
            self._step.entered = False
        if self._before:
            handlers = self._before
            if handlers is _ONE:
                set_handler(_SIGINT, signal.default_int_handler)
            else:
                handlers = handlers.copy()
                self._put_back()
            INTERRUPTION.asked = INTERRUPTION.unchanged = 0
            if self._pending:
                self._call(dict(handlers))

    def _put_back(self) -> None:
        """Restore all handlers, even if one of them runs at once and raises an error."""
        try:
            while self._before:
                number, before = self._before[-1]
                # None: such a handler cannot be restored by name.
                set_handler(number, _DEFAULT if before is None else before)
                self._before.pop()
        finally:
            if self._before:
                self._put_back()

    def _call(self, handlers: dict[int, Any]) -> None:
        """Call the handlers whose signals came, even if one of them raises an error."""
        try:
            while self._pending:
                number, frame = self._pending.popitem()
                before = handlers[number]
                if callable(before):
                    before(number, frame)
                elif before is None or before == _DEFAULT:
                    signal.raise_signal(number)
        finally:
            if self._pending:
                self._call(handlers)
