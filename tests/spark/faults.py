"""Faults at steps of a version, in the driver or in workers; and processes to list or kill."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]
KILLING = Path(__file__).parent / "killing"
"""Python imports the module in this folder at the start of a process that has it on its path."""


class Fault:
    """A planned fault. ``met``: some process has reached it."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def plan(
        self, step: str, what: str, who: str, *, always: bool = False, folder: Path | None = None, seconds: float = 0
    ) -> None:
        """``who`` is driver or worker; ``what`` is one of kill, kill java, exit, raise, fill (the disk of ``folder``),
        pause (for ``seconds``). ``always``: every process meets the fault, until it is forgotten."""
        self.done.unlink(missing_ok=True)
        aside = self.place.with_suffix(".new")
        planned = {"step": step, "what": what, "who": who, "always": always}
        aside.write_text(json.dumps({**planned, "folder": str(folder), "seconds": seconds}))
        aside.replace(self.place)

    def forget(self) -> None:
        self.place.unlink(missing_ok=True)

    @property
    def done(self) -> Path:
        return Path(f"{self.place}.met")

    @property
    def met(self) -> bool:
        return self.done.exists()


def environment(fault: Fault | None = None) -> dict[str, str]:
    """The environment of a pipeline in a process of its own."""
    found = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYSPARK_PYTHON": sys.executable}
    found.pop("FAULT", None)
    if fault is not None:
        found |= {"PYTHONPATH": os.pathsep.join([found["PYTHONPATH"], str(KILLING)]), "FAULT": str(fault.place)}
    return found


def descendants(process: int) -> list[int]:
    """Processes below one: the JVM, and the Python workers below that."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found = list(parents.get(process, []))
    for one in found:
        found += parents.get(one, [])
    return found


def command_of(process: int) -> str:
    try:
        return (Path("/proc") / str(process) / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def gone(processes: list[int], seconds: float = 20) -> list[int]:
    """The processes that still exist after waiting for them to end."""
    until = time.time() + seconds
    left = processes
    while left and time.time() < until:
        left = [one for one in left if is_alive(one)]
        time.sleep(0.1)
    return left


def kill(process: int) -> None:
    """Kill a process, unless it has ended by itself."""
    with suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)


def is_alive(process: int) -> bool:
    try:
        return (Path("/proc") / str(process) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
