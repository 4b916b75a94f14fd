"""Runs a command on a terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence


def on_terminal(
    command: Sequence[str], env: Mapping[str, str], *, columns: int = 100, output: bool = False
) -> tuple[int, str]:
    """The exit code of a command, and what it writes to a terminal: errors, and with ``output`` all that it prints."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    stdout = theirs if output else subprocess.DEVNULL
    process = subprocess.Popen(command, stdin=theirs, stdout=stdout, stderr=theirs, env=dict(env), close_fds=True)
    os.close(theirs)
    written = b""
    try:
        while read := os.read(ours, 1 << 16):
            written += read
    except OSError:  # The last process has closed the terminal.
        pass
    finally:
        os.close(ours)
    return process.wait(60), written.decode()
