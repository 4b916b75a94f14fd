"""Work in a child of this process, which sees memory as it is now and takes no time of the parent's.

The child is a copy of one thread: what it does must need no other thread and no lock that another one may hold. So
it is no place for Arrow, logging, or code that is still to be compiled. It keeps none of the parent's files and
sockets open, and lives on where the parent ends.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

SWITCH = "FRESHVIEWS_FORK"
"""A variable of the environment: 0 has all work done in line."""
_NICE = 10


def can_fork() -> bool:
    """Whether work may go to a child; elsewhere than on Linux, libraries do not survive it."""
    return sys.platform == "linux" and os.environ.get(SWITCH) != "0"


def in_child(work: Callable[[], None], ended: Callable[[int], None]) -> bool:
    """Have a child do ``work``; False, and nothing is done, where there can be none.

    ``ended`` is called in another thread when the child has ended, with its exit code: 0 where ``work`` returned.
    """
    if not can_fork():
        return False
    try:
        child = os.fork()
    except OSError:
        return False
    if child == 0:
        _run(work)
    # A thread that waits, so that no zombie is left however long this process has nothing else to do.
    threading.Thread(target=_wait, args=(child, ended), daemon=True).start()
    return True


def _run(work: Callable[[], None]) -> None:
    code = 1
    try:
        gc.disable()
        # Out of the terminal's and of Spark's process group, which are signalled as one.
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
        return  # somebody else in this process has waited for every child
    ended(os.waitstatus_to_exitcode(status))
