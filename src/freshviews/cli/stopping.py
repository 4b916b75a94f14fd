"""Handles SIGINT and SIGTERM during a run.

The first signal lets the current version finish. The second signal ends the process at once.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

from freshviews.printable import printable
from freshviews.spark.java import java_process

SIGNALS = (signal.SIGINT, signal.SIGTERM)
SECONDS_TO_END = 5.0
"""Seconds that the Java process has to end before it is killed."""


class Stopping:
    """Handlers of both signals. ``asked``: the number of signals; ``finishes``: the first one lets a version end."""

    def __init__(self, at_once: Callable[[], str]) -> None:
        """``at_once`` is called before the process ends at once; its result is printed."""
        self.asked = 0
        self.finishes = False
        self._at_once = at_once
        self._before: list[Any] = []

    def __enter__(self) -> Stopping:
        self._before = [signal.getsignal(one) for one in SIGNALS]
        self.install()
        return self

    def __exit__(self, *error: object) -> None:
        for one, handler in zip(SIGNALS, self._before, strict=True):
            signal.signal(one, handler)

    def install(self) -> None:
        """Install the handlers; call it again after a session starts, because the session installs its own."""
        for one in SIGNALS:
            signal.signal(one, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.asked += 1
        # Bypass Python's buffers: the signal may have interrupted a print.
        if self.asked == 1 and self.finishes:
            os.write(2, b"\nfinishing the current version; press again to stop at once\n")
            return
        self.end()

    def end(self) -> NoReturn:
        """End the process at once, with code 0 if a single request ends it."""
        message = self._at_once()
        os.write(2, f"\n{printable(message)}\n".encode())
        end_java()
        os._exit(130 if self.asked > 1 else 0)


def end_java() -> None:
    """Kill Spark's Java process; its Python workers end with it."""
    process = java_process()
    if process is None:
        return
    process.terminate()
    try:
        process.wait(SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
