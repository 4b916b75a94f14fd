"""Starts the Spark session, with the settings that a pipeline needs."""

from __future__ import annotations

import logging
import os
import re
import sys
import sysconfig
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

import freshviews
from freshviews import arguments
from freshviews.errors import FreshviewsError
from freshviews.kernel.machine.cache import cache_folder
from freshviews.spark.java import JavaOutput, class_archive, java_home
from freshviews.spark.settings import SettingError, defaults_of, merge_settings

_NOTES = {
    "spark.sql.streaming.checkpointFileManagerClass": "org.apache.spark.sql.execution.streaming.checkpointing."
    "FileSystemBasedCheckpointFileManager"
}
"""Spark writes its own offsets and commits by an atomic rename, without the extra file system calls of its default."""

_MASTER = re.compile(r"(local(\[.+\])?|local-cluster\[.+\]|yarn|spark://.+|k8s://.+)$")


_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LATER = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 -XX:Tier4CompileThreshold=150000 "
    "-XX:Tier4BackEdgeThreshold=400000"
)
"""Java's slower compiler works on what runs ten times as often as by default: at a start it would take a third of the
time of all else."""

SPARK_ERRORS = (PySparkException, Py4JError)
"""The exceptions of Spark: errors with a class in Spark, and other errors of Java."""


class SessionError(FreshviewsError):
    """Spark does not start; the message says why."""


_PASSED = (
    *("FRESHVIEWS_CACHE_DIR", "FRESHVIEWS_RINGS", "FRESHVIEWS_FUNCTIONS"),
    *("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"),
    *("FRESHVIEWS_WEBHDFS", "HADOOP_USER_NAME"),
    *("STORAGE_EMULATOR_HOST", "GOOGLE_CLOUD_PROJECT", "GOOGLE_APPLICATION_CREDENTIALS"),
    *("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_AUTHORITY_HOST"),
)
"""Variables that executors get; no secrets, as Spark shows its settings."""

_QUIET = """rootLogger.level = off
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
"""


def start_session(
    master: str | None = None, settings: Mapping[str, str] | None = None, *, quiet: bool = False
) -> SparkSession:
    """Return the running session of Spark, or start one with the settings that a pipeline needs.

    Workers run this Python, whatever PATH says.

    Parameters
    ----------
    master
        Master of Spark. None, the default: that of ``settings`` or of ``spark-defaults.conf``, else local mode with all
        cores.
    settings
        Settings of Spark by name, by default none. They come before those of ``spark-defaults.conf``, and these before
        ours (``freshviews.spark.settings``).
    quiet
        True: Spark logs nothing, and greetings of Java are not shown. Default: False.

    Returns
    -------
    SparkSession

    Raises
    ------
    JavaError
        There is no suitable Java, or it ends at once.
    SettingError
        A setting cannot be taken.
    SessionError
        Spark does not start.

    Examples
    --------
    >>> from freshviews.spark import start_session
    >>> spark = start_session("local[2]", {"spark.sql.shuffle.partitions": "4"})
    """
    arguments.optional(arguments.text, "master", master)
    arguments.optional(arguments.pairs, "settings", settings)
    arguments.flag("quiet", quiet)
    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    if master is not None and _MASTER.match(master) is None:
        raise SessionError(
            f"Spark does not start with the master {master}: it must be local, local[N], local-cluster[...], "
            "spark://HOST:PORT, yarn or k8s://..."
        )
    defaults = defaults_of(os.environ, Path(pyspark.__file__).parent)
    chosen = merge_settings(settings or {}, defaults, master)
    if "MASTER" not in os.environ and "spark.master" not in {**defaults, **chosen}:
        chosen["spark.master"] = "local[*]"
    home = java_home(os.environ)
    if home is not None:
        os.environ["JAVA_HOME"] = home
    given_options = chosen.get(_JAVA_OPTIONS, defaults.get(_JAVA_OPTIONS, ""))
    # Of two values Java takes the last one.
    java_options = [_LATER, given_options]
    if "SharedArchiveFile" not in given_options and "ArchiveClassesAtExit" not in given_options:
        java_options.append(class_archive.option())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.Builder().appName("freshviews")
    if quiet:
        log = cache_folder() / "log4j2.properties"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(_QUIET)
        java_options.append(f"-Dlog4j2.configurationFile={log.as_uri()}")
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
        # It also logs lost connections to Java, through the root logger. The error of the run names the cause.
        logging.getLogger().addFilter(_is_not_of_py4j)
        # It prints the stack of Java for an error that is raised as well.
        PySparkLogger.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    chosen[_JAVA_OPTIONS] = " ".join(filter(None, java_options))
    given = {**_NOTES, **executor_settings(os.environ), **chosen}
    for name, value in given.items():
        builder = builder.config(name, value)
    output = JavaOutput() if quiet else None
    try:
        if output is not None:
            output.start_java({"spark.app.name": "freshviews", **given})
            check_values(settings or {})
        session = builder.getOrCreate()
    except SPARK_ERRORS as error:
        where = f" with the master {master}" if master is not None else ""
        raise SessionError(f"Spark does not start{where}: {reason(error)}") from None  # may contain secrets of settings
    if output is not None:
        output.release()
        _silence_the_end(session)
    session.sparkContext.setLogLevel("OFF" if quiet else "ERROR")
    return session


def check_values(settings: Mapping[str, str]) -> None:
    """Raise SettingError for a value that a setting of Spark SQL cannot have: in a session with it, pyspark would never
    end reporting it."""
    jvm: Any = SparkContext._jvm
    conf = jvm.org.apache.spark.sql.internal.SQLConf()
    for name, value in settings.items():
        if name.startswith("spark.sql."):
            try:
                conf.setConfString(name, value)
            except SPARK_ERRORS as error:
                raise SettingError(f"{name} is {value}: {reason(error)}") from None


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def _silence_the_end(session: SparkSession) -> None:
    """Silence tracebacks of the server in this process that receives accumulators from Java, and of threads that call
    Java, after Java has ended: the message of the run reports that."""
    server = session.sparkContext._accumulatorServer
    usual, of_threads = server.handle_error, threading.excepthook

    def handle_error(request: Any, address: Any) -> None:
        if not isinstance(sys.exc_info()[1], EOFError | ConnectionError):
            usual(request, address)

    def handle_thread(error: threading.ExceptHookArgs) -> None:
        if not issubclass(error.exc_type, EOFError | ConnectionError | Py4JError):
            of_threads(error)

    server.handle_error, threading.excepthook = handle_error, handle_thread


def reason(error: Exception) -> str:
    """Spark's message, in one line; the type of the error if Java, which has the message, has ended."""
    java = getattr(error, "java_exception", None)
    try:
        text = str(error) if java is None else str(java.getMessage())
    except (Py4JError, OSError):
        return type(error).__name__
    if text.startswith("Cannot call methods on a stopped SparkContext"):
        return "no Spark master answers there"
    return " ".join(text.split()) or type(error).__name__


def executor_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment that Python workers of executors need, as executors of a cluster do not inherit it: the folder of
    this package if it is not installed, the folder of compiled code, and where a store is."""
    found = {}
    package = Path(freshviews.__file__).parents[1]
    if package not in (Path(sysconfig.get_path("purelib")), Path(sysconfig.get_path("platlib"))):
        given = [place for place in environment.get("PYTHONPATH", "").split(os.pathsep) if place]
        found["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(dict.fromkeys([str(package), *given]))
    for name in _PASSED:
        if name in environment:
            found[f"spark.executorEnv.{name}"] = environment[name]
    return found
