"""An archive of the classes of Spark, which Java maps instead of reading and checking thousands of files at each start.

Java makes it when a process ends, of the classes that were loaded in it (dynamic class data sharing). It fits one Java
and one set of jars, and Java passes over an archive that does not fit. It does not check whether an archive is whole,
so one is renamed when it is, and its name has its size.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from freshviews.kernel.machine.cache import cache_folder
from freshviews.spark.java.program import JavaError, java_home, java_process

_SILENT = "-Xlog:cds=off -Xlog:cds+dynamic=off"
"""Java would say on standard output that an archive does not fit."""
_SECONDS = 300.0
"""Time for Java to write an archive, of some 150 MB."""


def option() -> str:
    """Options by which Java uses the archive; empty if there is none."""
    found = next((path for path in _whole()), None)
    return "" if found is None else f"{shlex.quote(f'-XX:SharedArchiveFile={found}')} {_SILENT}"


@contextmanager
def making() -> Iterator[str]:
    """Within it a session is started with the options that this yields, and stopped; then Java writes the archive.

    Raises JavaError where it does not.
    """
    folder = _folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    part = folder / f"{_key()}.{os.getpid()}.part"
    part.unlink(missing_ok=True)
    try:
        yield f"{shlex.quote(f'-XX:ArchiveClassesAtExit={part}')} {_SILENT}"
        java = java_process()
        if java is None:
            raise JavaError("Spark was started by another process, which alone can archive its classes")
        # It ends when nothing can be read from its input.
        if java.stdin is not None:
            java.stdin.close()
        code = java.wait(_SECONDS)
        if code != 0 or not part.exists():
            raise JavaError(f"this Java archives no classes; it ended with exit code {code}")
        with part.open("rb") as file:
            os.fsync(file.fileno())
        before = _whole()
        part.rename(folder / f"{_key()}.{part.stat().st_size}.jsa")
        for path in before:
            path.unlink(missing_ok=True)
    finally:
        part.unlink(missing_ok=True)


def _whole() -> list[Path]:
    """Archives for this Java and these jars."""
    return [path for path in _folder().glob(f"{_key()}.*.jsa") if path.name.split(".")[1] == str(path.stat().st_size)]


def _folder() -> Path:
    return cache_folder().parent / "classes"


def _key() -> str:
    """What an archive depends on, as a hash; Java checks the rest."""
    home = os.environ.get("JAVA_HOME") or java_home(os.environ)
    program = f"{home}/bin/java" if home else str(shutil.which("java"))
    known = (os.path.realpath(program), pyspark.__file__, pyspark.__version__)
    return hashlib.sha256(" ".join(known).encode()).hexdigest()[:16]
