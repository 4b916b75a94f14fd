"""Runs work on a durable database in a child process that is killed at a named step."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from freshviews.store import crash_points as steps


def killed_at(step: str, time: int, work: Callable[[], None]) -> bool:
    """Fork, do the work, and be killed when the step is reached for the ``time``-th time.

    Returns False if the work ended first.
    """
    child = os.fork()
    if child == 0:
        reached = 0

        def hook(name: str) -> None:
            nonlocal reached
            reached += name == step
            if name == step and reached == time:
                os.kill(os.getpid(), signal.SIGKILL)

        steps.hook = hook
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the work failed"
    return os.WIFSIGNALED(status)


def only(directory: Path, pattern: str) -> Path:
    """The only file of a directory that matches."""
    (found,) = directory.glob(pattern)
    return found
