"""Checks the installation for ``freshviews doctor``: what is installed, what is missing, and how to install it."""

from __future__ import annotations

import os
import platform
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path
from typing import Literal

import freshviews
from freshviews.errors import FreshviewsError, short
from freshviews.records import dataclass

FIRST, LAST = (3, 11), (3, 13)
"""The Pythons that freshviews runs on."""

State = Literal["ok", "note", "missing", "fault"]

_PURPOSES = {
    "pandas": "to_pandas",
    "polars": "to_polars",
    "sql": "db.sql, freshviews query and the queries of freshviews serve",
    "spark": "pipelines on Spark (freshviews run), and freshviews query --spark",
    "flight": "Arrow Flight SQL (db.serve, freshviews serve --flight-sql)",
    "s3": "checkpoints on S3",
    "gcs": "checkpoints on Google Cloud Storage",
    "azure": "checkpoints on Azure",
}
_MODULES = {"google-re2": "re2"}
"""Names by which packages are imported, where these are other ones."""
_REQUIREMENT = re.compile(r"([\w.-]+)(?:\[[^\]]*\])?\s*([^;]*)(?:;\s*(.*))?")
_EXTRA = re.compile(r"""extra\s*==\s*["']([\w-]+)["']""")
_BOUND = re.compile(r"(>=|<)\s*([\d.]+)")


@dataclass(frozen=True)
class Finding:
    """One line of the report. A ``fault`` keeps freshviews from working; what is ``missing`` is optional."""

    state: State
    text: str


@dataclass(frozen=True)
class Requirement:
    """A package that freshviews needs: always, or with an extra. ``bounds``: pairs such as ``(">=", "1.26")``."""

    name: str
    bounds: tuple[tuple[str, str], ...]
    extra: str = ""


def report() -> Iterator[Finding]:
    """All findings. A check that fails is a finding, too."""
    checks: tuple[Callable[[], Iterator[Finding]], ...] = (_python, _packages, _java, _cache, _variables, _view)
    for check in checks:
        try:
            yield from check()
        except Exception as error:
            yield Finding("fault", f"{check.__name__.strip('_')}: {type(error).__name__}: {short(str(error))}")


def _python() -> Iterator[Finding]:
    here = f"Python {platform.python_version()} at {sys.executable}, {platform.system()} on {platform.machine()}"
    fits = FIRST <= sys.version_info[:2] <= LAST
    wanted = "" if fits else "; install Python 3.11, 3.12 or 3.13, and freshviews in an environment of it"
    yield Finding("ok" if fits else "fault", here + wanted)
    yield Finding("ok", f"freshviews {freshviews.__version__} at {Path(__file__).parent}")


def _packages() -> Iterator[Finding]:
    try:
        needed = requirements(requires("freshviews") or [])
    except PackageNotFoundError:
        yield Finding("note", "freshviews runs from its source, so the versions of packages are not checked")
        return
    installed = {one.name: version for one in needed if (version := _version(one.name)) is not None}
    yield from packages(needed, installed)
    for one in needed:
        if not one.extra and one.name in installed:
            try:
                import_module(_MODULES.get(one.name, one.name.replace("-", "_")))
            except Exception as error:
                broken = f"{one.name} {installed[one.name]} cannot be imported: {short(str(error))}"
                yield Finding("fault", f"{broken}; pip install --force-reinstall {one.name}")


def packages(needed: Sequence[Requirement], installed: Mapping[str, str]) -> Iterator[Finding]:
    """Findings on packages: one for all that are always needed and fit, one for each that does not, and one per extra.

    An extra counts as wanted if its first package is installed.
    """
    base = [one for one in needed if not one.extra]
    fitting = [one for one in base if one.name in installed and fits(installed[one.name], one.bounds)]
    if fitting:
        yield Finding("ok", "packages: " + ", ".join(f"{one.name} {installed[one.name]}" for one in fitting))
    for one in base:
        if one not in fitting:
            yield Finding("fault", _lacking(one, installed, _pip([one])))
    for extra, purpose in _PURPOSES.items():
        parts = [one for one in needed if one.extra == extra]
        install = f"pip install 'freshviews[{extra}]'"
        if not parts:
            continue
        if parts[0].name not in installed:
            yield Finding("missing", f"{parts[0].name}, for {purpose}: {install}")
            continue
        lacking = [one for one in parts if one.name not in installed]
        other = [one for one in parts if one.name in installed and not fits(installed[one.name], one.bounds)]
        if not lacking:
            found = ", ".join(f"{one.name} {installed[one.name]}" for one in parts)
            yield Finding("ok", f"{extra}, for {purpose}: {found}")
        for one in lacking:
            yield Finding("fault", _lacking(one, installed, install))
        for one in other:
            yield Finding("note", _lacking(one, installed, install))


def requirements(lines: Sequence[str]) -> list[Requirement]:
    """The requirements of a package's metadata. Those with a marker other than an extra are left out."""
    found = []
    for line in lines:
        parts = _REQUIREMENT.fullmatch(line)
        if parts is None:
            continue
        name, bounds, marker = parts.groups()
        extra = _EXTRA.fullmatch(marker) if marker else None
        if not marker or extra:
            pairs = tuple((sign, version) for sign, version in _BOUND.findall(bounds))
            found.append(Requirement(name, pairs, extra[1] if extra else ""))
    return found


def fits(version: str, bounds: Sequence[tuple[str, str]]) -> bool:
    """Whether a version is within bounds."""
    found = _numbers(version)
    return all((found >= _numbers(limit)) == (sign == ">=") for sign, limit in bounds)


def _numbers(version: str) -> list[int]:
    release = re.match(r"[\d.]*", version)
    numbers = [int(one) for one in (release[0] if release else "").split(".") if one]
    return numbers + [0] * (4 - len(numbers))


def _lacking(one: Requirement, installed: Mapping[str, str], install: str) -> str:
    wanted = ",".join(sign + version for sign, version in one.bounds)
    if one.name in installed:
        return f"{one.name} {installed[one.name]} is installed, and {wanted} is expected: {install}"
    return f"{one.name} is needed, and not installed: {install}"


def _pip(needed: Sequence[Requirement]) -> str:
    wanted = (one.name + ",".join(sign + version for sign, version in one.bounds) for one in needed)
    return "pip install " + " ".join(f"'{one}'" for one in wanted)


def _version(package: str) -> str | None:
    try:
        return distribution(package).version
    except PackageNotFoundError:
        return None


def _java() -> Iterator[Finding]:
    if _version("pyspark") is None:
        return
    from freshviews.spark.java import JavaError, java_home

    try:
        home = java_home(os.environ)
    except JavaError as error:
        yield Finding("fault", str(error))
        return
    where = home or os.environ.get("JAVA_HOME") or "the PATH"
    yield Finding("ok", f"Java, for Spark, of {where}")


def _cache() -> Iterator[Finding]:
    from freshviews.kernel.machine.cache import cache_folder

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        folder = cache_folder()
    for one in caught:
        yield Finding("note", str(one.message))
    here, held = _held(folder)
    versions = [one for one in folder.parent.iterdir() if one != folder and one.is_dir()]
    if not os.access(folder, os.W_OK):
        yield Finding("fault", f"{folder} cannot be written; FRESHVIEWS_CACHE_DIR names another folder")
        return
    first = "" if here else "; the first views are compiled, which takes seconds"
    others = f"; {len(versions)} folders of other versions beside it may be deleted" if versions else ""
    yield Finding("ok", f"compiled code in {folder}: {held / 1e6:.1f} MB in {here} files{first}{others}")


def _held(folder: Path) -> tuple[int, int]:
    """The number of files in a folder and below it, and their bytes."""
    files = held = 0
    for one in os.scandir(folder):
        if one.is_dir(follow_symlinks=False):
            more, bytes_ = _held(Path(one.path))
            files, held = files + more, held + bytes_
        else:
            files, held = files + 1, held + one.stat(follow_symlinks=False).st_size
    return files, held


def _variables() -> Iterator[Finding]:
    for name in sorted(os.environ):
        if name.startswith("FRESHVIEWS_"):
            slow = ": nothing is compiled, and all runs as plain Python" if name == "FRESHVIEWS_PURE_PYTHON" else ""
            yield Finding("note", f"{name}={short(os.environ[name])} in the environment{slow}")


def _view() -> Iterator[Finding]:
    try:
        with freshviews.Database() as db:
            db.execute(
                "CREATE TABLE t (part STRING, qty INT); "
                "CREATE MATERIALIZED VIEW v AS SELECT part, SUM(qty) AS qty FROM t GROUP BY part"
            )
            db.insert("t", [("bolt", 3), ("bolt", 4)])
            found = list(db.view("v"))
    except FreshviewsError as error:
        yield Finding("fault", f"a view cannot be maintained: {error}")
        return
    if found == [("bolt", 7)]:
        yield Finding("ok", "a view was made, changed and read")
    else:
        yield Finding("fault", f"a view has {found} instead of [('bolt', 7)]; reinstall freshviews")
