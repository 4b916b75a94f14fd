"""Merges the settings of Spark that freshviews prefers with those of the user, which take precedence.

Some settings are fixed, because other values would lose or change rows. Another value for a fixed setting is refused.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from freshviews.errors import FreshviewsError

FIXED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
}

_REASONS = {
    "spark.sql.session.timeZone": "timestamps have no zone in freshviews",
    "spark.sql.files.ignoreCorruptFiles": "the rows of a file that cannot be read would be lost unnoticed; mend the "
    "file, or put it where the source does not see it",
    "spark.sql.files.ignoreMissingFiles": "the rows of a file that was deleted before it was read would be lost "
    "unnoticed; keep files until a version has them",
}
"""The reason for which each of FIXED is fixed, and the remedy."""

OURS = {
    # Partitions beyond the cores cost 5 ms each per micro-batch without benefit.
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Else a task runs where most of its rows were read, and not where its cells are.
    "spark.shuffle.reduceLocality.enabled": "false",
    # A task waits for the executor with its cells while a task of another job runs there.
    "spark.locality.wait.process": "60s",
    # Large Arrow batches: each costs a call into the engine.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
}

_PACKAGE = re.compile(r"[^:\s]+:[^:\s]+:[^:\s]+")
_LINE = re.compile(r"\s*([^\s=:#!]+)(?:\s*[=:]\s*|\s+|$)(.*)")


class SettingError(FreshviewsError):
    """A setting of Spark cannot be read or taken; the message names it."""


class NoSpark(FreshviewsError):
    """pyspark is not installed; the message says what to do."""


def spark_home() -> Path | None:
    """The folder of pyspark, which is not imported; None if it is not installed."""
    found = importlib.util.find_spec("pyspark")
    return None if found is None or found.origin is None else Path(found.origin).parent


def need_spark() -> None:
    """Raise NoSpark if pyspark is not installed."""
    if spark_home() is None:
        raise NoSpark(
            "pyspark is not installed: pip install 'freshviews[spark]', or 'freshviews[spark,java]' where there is no "
            "Java"
        )


def settings_of(words: Iterable[str]) -> dict[str, str]:
    """The settings that ``--conf NAME=VALUE`` gives, each of a word. Raises SettingError."""
    found: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name.strip() or " " in name.strip():
            raise SettingError(f"--conf {word}: NAME=VALUE is accepted, as in --conf spark.sql.shuffle.partitions=8")
        if found.setdefault(name.strip(), value.strip()) != value.strip():
            raise SettingError(
                f"--conf gives {name.strip()} two values, {found[name.strip()]} and {value.strip()}; leave one value "
                "out"
            )
    return found


def merge_settings(given: Mapping[str, str], defaults: Mapping[str, str], master: str | None = None) -> dict[str, str]:
    """The settings to start Spark with. ``given``: those of the script and of the caller; ``defaults``: those that
    Spark reads itself; ``master``: overrides a master among them. Raises SettingError if a fixed one is given another
    value."""
    for name, value in FIXED.items():
        if given.get(name, value).lower() != value.lower():
            raise SettingError(f"{name} is {given[name]}; it must be {value}: {_REASONS[name]}")
    named = {} if master is None else {"spark.master": master}
    return {name: value for name, value in OURS.items() if name not in defaults} | dict(given) | named | FIXED


def defaults_of(environment: Mapping[str, str], spark_home: Path) -> dict[str, str]:
    """The settings of ``spark-defaults.conf``, which Spark reads itself unless others are given. Raises SettingError if
    the file cannot be read."""
    home = Path(environment.get("SPARK_HOME") or spark_home)
    file = Path(environment.get("SPARK_CONF_DIR") or home / "conf") / "spark-defaults.conf"
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    found = (_LINE.match(line) for line in text.splitlines() if not line.lstrip().startswith(("#", "!")))
    return {one[1]: one[2].strip() for one in found if one is not None}


def sql_settings_of(environment: Mapping[str, str], spark_home: Path) -> set[str]:
    """The settings of Spark SQL that the user gives to every session, except those that change no result. Errors as
    ``defaults_of``."""
    names = {name for name in defaults_of(environment, spark_home) if name.startswith("spark.sql.")}
    names |= set(re.findall(r"spark\.sql\.[\w.]+", environment.get("PYSPARK_SUBMIT_ARGS", "")))
    return names - set(OURS) - set(FIXED)


def packages_with(settings: Mapping[str, str], packages: str | None) -> dict[str, str]:
    """The settings with packages of Maven added to those that they name."""
    if not packages:
        return dict(settings)
    named = [one.strip() for one in packages.split(",")]
    for one in named:
        if not _PACKAGE.fullmatch(one):
            raise SettingError(
                f"--packages {one or 'with nothing between commas'}: write GROUP:NAME:VERSION, as in "
                "org.apache.spark:spark-avro_2.13:4.1.1, with commas between several packages"
            )
    known = [settings["spark.jars.packages"]] if settings.get("spark.jars.packages") else []
    return {**settings, "spark.jars.packages": ",".join([*known, *named])}
