"""Maven jars, fetched once by Ivy, which is part of Spark, into a folder of the user."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from demo.servers import Missing
from freshviews.kernel.machine.cache import cache_folder
from freshviews.spark.java import JavaError, java_home

SECONDS = 300
"""Seconds to fetch a package with its dependencies."""


def java() -> str:
    """The Java program on which Spark runs. Raises Missing if there is none."""
    try:
        home = java_home(os.environ) or os.environ.get("JAVA_HOME")
    except JavaError as error:
        raise Missing(f"no Java: {error}") from None
    return f"{home}/bin/java" if home else str(shutil.which("java"))


def jars(package: str, without: Sequence[Path] = ()) -> list[Path]:
    """The jars of GROUP:NAME:VERSION and of its dependencies; ``without``: except those in these folders. Raises
    Missing if they cannot be fetched."""
    found = _fetched(package)
    there = {path.name.rpartition("-")[0] for folder in without for path in folder.glob("*.jar")}
    return [path for path in sorted(found.glob("*.jar")) if path.name.rpartition("-")[0] not in there]


def jars_for_spark(packages: Sequence[str]) -> dict[str, str]:
    """The setting ``spark.jars`` with packages, without the jars that are part of Spark; empty if there are none.
    Raises Missing if one cannot be fetched."""
    import pyspark

    own = Path(pyspark.__file__).parent / "jars"
    found = [path for package in packages for path in jars(package, [own])]
    return {"spark.jars": ",".join(map(str, found))} if found else {}


_FAILED: dict[str, str] = {}


def _fetched(package: str) -> Path:
    """The folder with the jars of a package."""
    import pyspark

    folder = cache_folder().parent / "maven" / package.replace(":", "_")
    if folder.exists():
        return folder
    if package in _FAILED:
        raise Missing(_FAILED[package])
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
            raise Missing(_FAILED.setdefault(package, f"{package} cannot be fetched from Maven"))
        aside.rename(folder)
    return folder
