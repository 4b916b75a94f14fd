"""Ctrl-C waits until a step that must be whole has ended, or until the step can be taken back."""

from __future__ import annotations

import signal
import threading
from _signal import getsignal as handler_of  # type: ignore[import-not-found]
from _signal import signal as set_handler
from types import FrameType, TracebackType
from typing import Any, NoReturn

from freshviews.errors import FreshviewsError
from freshviews.expr.host_evaluation import INTERRUPTION

_SIGINT = int(signal.SIGINT)
_INSIDE = (
    "a signal handler, or a function that the database calls, changes the database in the middle of a change; let it "
    "note what to do, and do it afterwards"
)


class Uninterrupted:
    """A context in which SIGINT, in the main thread, is put off until the end.

    At the end the handler that was there before is called, which mostly raises KeyboardInterrupt. If it is
    Python's own, a long evaluation inside may end earlier, where a commit allows it
    (``expr.host_evaluation.Interruption``). Other threads never receive signals, so there SIGINT is left alone.

    One for all such steps of a database, which one thread at a time enters. Handlers of other signals run between two
    operations of Python, thus in the middle of a step, too. One that begins a step then gets an error.
    """

    __slots__ = ("_before", "_installed", "_pending", "entered")

    def __init__(self) -> None:
        self.entered = False

    def refuse(self) -> NoReturn:
        """Raise the error of one that begins a step inside of another."""
        raise FreshviewsError(_INSIDE)

    def __enter__(self) -> None:
        if self.entered:
            self.refuse()
        self._pending: tuple[int, FrameType | None] | None = None
        self._installed = threading.current_thread() is threading.main_thread()
        if self._installed:
            # As signal.signal, which spends more than a small batch does on looking for enumerations.
            self._before: Any = handler_of(_SIGINT)  # known before the new handler can run
            set_handler(_SIGINT, self._put_off)
            INTERRUPTION.asked = 0
        # Last: where Ctrl-C comes before the handler is there, the step is not begun, and nothing ends it.
        self.entered = True

    def _put_off(self, number: int, frame: FrameType | None) -> None:
        self._pending = (number, frame)
        if self._before is signal.default_int_handler:
            INTERRUPTION.asked = threading.get_ident()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.entered = False
        if self._installed:
            # None: the handler was not installed from Python, so it cannot be put back by name.
            before = signal.SIG_DFL if self._before is None else self._before
            set_handler(_SIGINT, before)
            INTERRUPTION.asked = 0
            if self._pending is not None:
                if callable(before):
                    before(*self._pending)
                elif before == signal.SIG_DFL:
                    signal.raise_signal(signal.SIGINT)
