"""Jars of Maven for tests: fetched once by Ivy, which comes with Spark, into a folder of the user."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from freshviews.kernel.machine.cache import cache_folder
from freshviews.spark.connectors.declarations import connector_of
from freshviews.spark.java import JavaError, java_home

SECONDS = 300
"""Time to fetch a package with all that it needs."""


KAFKA_CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
AVRO = "org.apache.spark:spark-avro_2.13:4.1.1"
POSTGRES = "org.postgresql:postgresql:42.7.14"
"""The newest that Maven has; docs/connectors/README.md says with which Spark they run."""
LAKES = {
    "4.1": ["io.delta:delta-spark_4.1_2.13:4.4.0", "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"],
    "4.2": ["io.delta:delta-spark_4.2_2.13:4.4.0"],
}
"""By the release of Spark. None runs with 4.3: docs/connectors/delta.md and iceberg.md say why."""


def java() -> str:
    """The program that Spark runs on. Skips the test if there is none."""
    try:
        home = java_home(os.environ) or os.environ.get("JAVA_HOME")
    except JavaError as error:
        pytest.skip(f"no Java: {error}")
    return f"{home}/bin/java" if home else str(shutil.which("java"))


def jars(package: str, without: Sequence[Path] = ()) -> list[Path]:
    """The jars of GROUP:NAME:VERSION and of all that it needs; ``without``: not those that are in one of these folders.
    Skips the test where they cannot be fetched."""
    found = _fetched(package)
    if isinstance(found, str):
        pytest.skip(found)
    there = {path.name.rpartition("-")[0] for folder in without for path in folder.glob("*.jar")}
    return [path for path in sorted(found.glob("*.jar")) if path.name.rpartition("-")[0] not in there]


def spark_jars() -> dict[str, str]:
    """The setting ``spark.jars`` with the connectors that can be fetched; empty if there are none."""
    import pyspark

    own = Path(pyspark.__file__).parent / "jars"
    wanted = (KAFKA_CONNECTOR, AVRO, POSTGRES, *lakes())
    found = [path for package in wanted if has(package) for path in jars(package, [own])]
    return {"spark.jars": ",".join(map(str, found))} if found else {}


def lakes() -> list[str]:
    """The packages of tables of a lakehouse that run with this Spark."""
    import pyspark

    return LAKES.get(pyspark.__version__.rpartition(".")[0], [])


def lake(name: str) -> str:
    """The package of delta or iceberg. Skips the test where none runs with this Spark."""
    import pyspark

    found = [package for package in lakes() if f":{name}-" in package]
    if not found:
        pytest.skip(f"no package of {name} runs with pyspark {pyspark.__version__}; make lakes runs it with another")
    jars(found[0])
    return found[0]


def lake_settings(folder: Path) -> dict[str, str]:
    """Settings for the lakehouses of ``lakes``: those of Delta, and a catalog ``lake`` of Iceberg in a folder."""
    names = "".join(lakes())
    found = dict(connector_of("delta").settings) if "delta" in names else {}
    if "iceberg" in names:
        catalog = "spark.sql.catalog.lake"
        found |= {catalog: "org.apache.iceberg.spark.SparkCatalog", f"{catalog}.type": "hadoop"}
        found[f"{catalog}.warehouse"] = str(folder)
    return found


def has(package: str) -> bool:
    """True if a package can be fetched."""
    try:
        return isinstance(_fetched(package), Path)
    except pytest.skip.Exception:
        return False


_FAILED: dict[str, str] = {}


def _fetched(package: str) -> Path | str:
    """The folder with the jars of a package, or why it cannot be fetched."""
    import pyspark

    folder = cache_folder().parent / "maven" / package.replace(":", "_")
    if folder.exists() or package in _FAILED:
        return _FAILED.get(package, folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():
            return folder
        aside = folder.with_name(f"{folder.name}.part")
        shutil.rmtree(aside, ignore_errors=True)
        (ivy,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
        command = [java(), "-jar", str(ivy), "-dependency", *package.split(":"), "-cache", str(folder.parent / "ivy")]
        command += ["-confs", "default", "-types", "jar", "bundle", "-warn"]
        command += ["-retrieve", f"{aside}/[artifact]-[revision](-[classifier]).[ext]"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
            failed = done.returncode != 0 or "UNRESOLVED" in done.stdout + done.stderr or not aside.exists()
        except subprocess.TimeoutExpired:
            failed = True
        if failed:
            return _FAILED.setdefault(package, f"{package} cannot be fetched from Maven")
        aside.rename(folder)
    return folder
