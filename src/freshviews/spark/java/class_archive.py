"""Keeps Spark's Java classes in one archive, so that Spark starts faster.

At each start, Java maps the archive into memory instead of reading the classes from thousands of files.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark

from freshviews.kernel.machine.cache import cache_folder
from freshviews.spark.java.program import JavaError, java_process

_SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""Otherwise Java reports an archive that does not fit on standard output."""
_SECONDS = 300.0
"""Seconds for Java to write an archive of some 150 MB."""
_LEFT = 3600.0
"""Age in seconds at which a half-written archive belongs to a process that was killed."""


def option() -> str:
    """Options by which Java uses the archive; empty if there is none."""
    found = next(iter(_complete_archives()), None)
    return "" if found is None else f"{shlex.quote(f'-XX:SharedArchiveFile={found}')} {_SILENT}"


@contextmanager
def making() -> Iterator[str]:
    """Yields options with which a session is started and stopped in the block; then Java writes the archive.

    Raises JavaError if Java does not write it. After an error Java is killed, as it would write an archive at its end.

    When a process ends, Java makes the archive from the classes that the process loaded (dynamic class data sharing).
    Java ignores an archive of another Java or of other jars, but does not check whether an archive is complete. So only
    a complete archive gets its final name, which contains its size.
    """
    folder = _folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _delete_parts(folder, time.time() - _LEFT)
    part = folder / f"{_key()}.{os.getpid()}.part"
    try:
        yield f"{shlex.quote(f'-XX:ArchiveClassesAtExit={part}')} {_SILENT}"
        _end_java()
        if not part.exists():
            raise JavaError("this Java cannot archive classes")
        with part.open("rb") as file:
            os.fsync(file.fileno())
        made = folder / f"{_key()}.{part.stat().st_size}.jsa"
        part.rename(made)
        for path in _complete_archives():
            if path != made:
                path.unlink(missing_ok=True)
    except BaseException:
        java = java_process()
        if java is not None:
            java.kill()
            java.wait()
        raise
    finally:
        part.unlink(missing_ok=True)


def _end_java() -> None:
    """Wait until Java has ended; it ends when its input does."""
    java = java_process()
    if java is None:
        raise JavaError("only the process that started Spark can archive its classes")
    if java.stdin is not None:
        java.stdin.close()
    try:
        code = java.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        raise JavaError(f"Java has not written its classes within {_SECONDS:g} seconds") from None
    if code != 0:
        raise JavaError(f"Java ended with exit code {code}, and archived no classes")


def _delete_parts(folder: Path, before: float) -> None:
    """Delete the files of processes that were killed before a time."""
    for path in folder.glob("*.part"):
        with suppress(OSError):
            if path.stat().st_mtime < before:
                path.unlink()


def _complete_archives() -> list[Path]:
    """Archives for this Java and these jars."""
    found = []
    for path in _folder().glob(f"{_key()}.*.jsa"):
        with suppress(FileNotFoundError):
            if path.name.split(".")[1] == str(path.stat().st_size):
                found.append(path)
    return found


def _folder() -> Path:
    """A folder in the folder of compiled code, which no other user can write to."""
    return cache_folder() / "classes"


def _key() -> str:
    """A hash of the inputs of an archive; Java checks the rest. A session that starts has set JAVA_HOME."""
    home = os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else str(shutil.which("java"))
    known = (os.path.realpath(program), pyspark.__file__, pyspark.__version__)
    return hashlib.sha256(" ".join(known).encode()).hexdigest()[:16]
