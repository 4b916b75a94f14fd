"""Kills the process that reaches a step, or causes another fault there. Python imports this at the start of every
process that has it on its path: in the driver and in the workers of executors.

``FAULT`` in the environment names a file that ``tests.spark.faults`` writes; it is read at every step.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from pathlib import Path

PLACE = os.environ.get("FAULT")


def name_of(process: int) -> str:
    return Path(f"/proc/{process}/comm").read_text().strip()


def parent_of(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def java() -> int:
    """The nearest Java process: for a worker the executor among its ancestors, else the child of this process."""
    process = os.getpid()
    while process > 1:
        if name_of(process) == "java":
            return process
        process = parent_of(process)
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if parent_of(int(path.name)) == os.getpid() and name_of(int(path.name)) == "java":
                return int(path.name)
    raise AssertionError("there is no Java process")


def reached(step: str) -> None:
    """Cause the fault that is planned for this step in a process of this kind, if there is one."""
    assert PLACE is not None
    try:
        fault = json.loads(Path(PLACE).read_text())
    except (FileNotFoundError, ValueError):
        return
    worker = b"pyspark.daemon" in Path("/proc/self/cmdline").read_bytes()
    if fault["step"] != step or fault["who"] != ("worker" if worker else "driver"):
        return
    try:
        if not fault["always"]:
            os.rename(PLACE, f"{PLACE}.met")
    except FileNotFoundError:
        return  # another process has caused it already
    meet(fault)


def meet(fault: dict[str, str]) -> None:
    what = fault["what"]
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "kill java":
        os.kill(java(), signal.SIGKILL)
    elif what == "exit":
        os._exit(3)
    elif what == "raise":
        raise RuntimeError("a fault")
    elif what == "pause":
        time.sleep(float(fault["seconds"]))
    elif what == "fill":
        fill(Path(fault["folder"]) / "filler")


def fill(path: Path) -> None:
    """Fill the disk of the file completely."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 8, 1):
            with contextlib.suppress(OSError):
                while file.write(b"\0" * size) == size:
                    pass


if PLACE:
    from freshviews.spark import crash_points as steps

    steps.hook = reached
