"""Runs work in a child process, which sees the parent's memory as it was at the fork. The parent does not wait."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

SWITCH = "FRESHVIEWS_FORK"
"""An environment variable: 0 makes all work run in line."""
_NICE = 10


def can_fork() -> bool:
    """True if work may run in a child; only on Linux do libraries survive a fork."""
    return sys.platform == "linux" and os.environ.get(SWITCH) != "0"


def in_child(work: Callable[[], None], ended: Callable[[int], None]) -> bool:
    """Run ``work`` in a child; return False, without doing anything, if that is not possible.

    ``ended`` is called in another thread with the child's exit code: 0 if ``work`` returned.

    The child has a single thread. Its work must not need another thread, or a lock that another thread may hold. So it
    must not use Arrow, logging, or code that is not compiled yet. The child closes its copies of the parent's files and
    sockets, and survives the parent.
    """
    if not can_fork():
        return False
    try:
        child = os.fork()
    except OSError:
        return False
    if child == 0:
        _run(work)
    # A thread waits for the child, so that no zombie remains.
    threading.Thread(target=_wait, args=(child, ended), daemon=True).start()
    return True


def _run(work: Callable[[], None]) -> None:
    code = 1
    try:
        gc.disable()
        # Leave the process group of the terminal and of Spark, which get signals as a group.
        os.setsid()
        for handled in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(handled, signal.SIG_DFL)
        _let_go_of_files()
        os.nice(_NICE)
        work()
        code = 0
    finally:
        os._exit(code)


def _let_go_of_files() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nothing, standard)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            with suppress(OSError):
                os.close(int(name))


def _wait(child: int, ended: Callable[[int], None]) -> None:
    try:
        _, status = os.waitpid(child, 0)
    except ChildProcessError:
        return  # another thread of this process has waited for every child
    ended(os.waitstatus_to_exitcode(status))
