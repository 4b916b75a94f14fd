"""Reads ``spark-pipeline.yml``, the file that specifies a project of Spark's declarative pipelines.

Reading it does not start Spark.
"""

from __future__ import annotations

import glob
import importlib.util
import re
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path, PurePath
from typing import Any

from freshviews.errors import FreshviewsError, short
from freshviews.records import dataclass

SUFFIXES = (".yml", ".yaml")
UNSUPPORTED = "freshviews.unsupported"
"""The setting that says what happens to a materialized view that cannot be maintained."""
REFUSE, RECOMPUTE = "refuse", "recompute"

_FIELDS = ("name", "storage", "catalog", "database", "schema", "configuration", "libraries")
_REQUIRED = ("name", "storage")
_LONGEST = 1_000_000
_DEEPEST = 20


class ProjectError(FreshviewsError):
    """A project cannot be read or run; the message has the file, the place and the remedy."""


@dataclass(frozen=True)
class ProjectSpec:
    """A specification. ``includes``: patterns of the files with definitions, relative to the folder of ``file``."""

    file: Path
    name: str
    storage: str
    catalog: str | None = None
    database: str | None = None
    configuration: Mapping[str, str] = field(default_factory=dict, repr=False)
    includes: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return self.file.parent

    @property
    def recomputes(self) -> bool:
        """True if Spark recomputes the materialized views that cannot be maintained."""
        return self.configuration.get(UNSUPPORTED, REFUSE) == RECOMPUTE

    def files(self) -> list[Path]:
        """The files with definitions, in the order in which Spark reads them. Raises ProjectError, also for none."""
        kept = [*dict.fromkeys(path for pattern in self.includes for path in self._found(pattern))]
        if not kept:
            raise ProjectError(
                f"{self.file}: no file matches {', '.join(map(_written, self.includes)) or 'an empty list'} under "
                "libraries; write definitions into .sql and .py files, and name their folder, as - glob: {include: "
                "transformations/**}"
            )
        for path in kept:
            if path.suffix not in (".py", ".sql"):
                raise ProjectError(
                    f"{path}: a file of definitions ends with .sql or .py; move this file, or write narrower patterns "
                    f"under libraries in {self.file}"
                )
        return kept

    def _found(self, pattern: str) -> list[Path]:
        return [path for path in self.folder.glob(pattern) if path.is_file() and "__pycache__" not in path.parts]

    def without_files(self) -> list[str]:
        """The patterns of ``libraries``, as written, that no file matches."""
        return [_written(pattern) for pattern in self.includes if not self._found(pattern)]


def _written(pattern: str) -> str:
    return pattern.removesuffix("/*")


def is_project(name: str) -> bool:
    """True if a name on the command line is that of a specification."""
    return PurePath(name).suffix.lower() in SUFFIXES


def read_spec(name: str) -> ProjectSpec:
    """The specification in a file. Raises ProjectError."""
    file = Path(name)
    try:
        data = file.read_bytes()[: _LONGEST + 1]
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        others = ", ".join(str(one) for one in sorted(file.parent.glob("*.y*ml"))[:3])
        there = f"name {others}, or " if others else ""
        raise ProjectError(f"{name}: no such file; {there}create a project with freshviews init NAME") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ProjectError(f"{name}: cannot be read: {reason}; a specification in YAML is accepted") from None
    if len(data) > _LONGEST:
        raise ProjectError(
            f"{name}: longer than {_LONGEST} bytes; a specification only names the files with definitions"
        )
    return _unpacked(file, _loaded(name, text))


def _loaded(name: str, text: str) -> Any:
    if importlib.util.find_spec("yaml") is None:
        raise ProjectError(f"{name}: a project needs PyYAML: pip install 'freshviews[spark]'")
    import yaml

    depth = 0
    try:
        for event in yaml.parse(text, yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            where = f"{name}:{event.start_mark.line + 1}:{event.start_mark.column + 1}"
            if isinstance(event, yaml.AliasEvent):
                raise ProjectError(f"{where}: the alias *{short(event.anchor)} is refused; write the value out")
            if depth > _DEEPEST:
                raise ProjectError(f"{where}: more than {_DEEPEST} levels; {_accepted()}")
        return yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = name if mark is None else f"{name}:{mark.line + 1}:{mark.column + 1}"
        problem = error.problem or error.context
        raise ProjectError(
            f"{where}: not YAML: {problem}; correct the file, or write an example with freshviews init NAME"
        ) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # dates and numbers that are none
        problem = " ".join(str(error).split())
        raise ProjectError(
            f"{name}: not YAML: {problem}; correct the file, or write an example with freshviews init NAME"
        ) from None


def _unpacked(file: Path, data: Any) -> ProjectSpec:
    if not isinstance(data, dict):
        raise ProjectError(f"{file}: {_accepted()}")
    for key in data:
        if key not in _FIELDS:
            raise ProjectError(f"{file}: unknown field {short(str(key))}; {_accepted()}")
    for key in _REQUIRED:
        if key not in data:
            raise ProjectError(f"{file}: the field {key} is missing; {_accepted()}")
    texts = {key: _text(file, key, data[key]) for key in _FIELDS[:5] if data.get(key) is not None}
    for key in _REQUIRED:
        if not texts.get(key):
            raise ProjectError(f"{file}: the field {key} is empty; give it a value")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", texts["storage"]) is None:
        raise ProjectError(
            f"{file}: storage: {short(texts['storage'])} has no scheme; an absolute address such as "
            f"file://{Path(file.parent, 'pipeline-storage').absolute()} is accepted"
        )
    return ProjectSpec(
        file,
        texts["name"],
        texts["storage"],
        texts.get("catalog"),
        texts.get("database", texts.get("schema")),
        _configuration(file, data.get("configuration", {})),
        _includes(file, data.get("libraries", [])),
    )


def _text(file: Path, key: str, value: object) -> str:
    if not isinstance(value, str):
        raise ProjectError(f"{file}: {key}: text is expected, not {short(str(value))}; write it in quotes")
    return value


def _configuration(file: Path, given: object) -> dict[str, str]:
    if not isinstance(given, dict):
        raise ProjectError(f"{file}: configuration: names with values are expected, as spark.sql.ansi.enabled: 'true'")
    for key, value in given.items():
        if not isinstance(key, str):
            raise ProjectError(f"{file}: configuration: the name {short(str(key))} is not text; write it in quotes")
        if not isinstance(value, str):
            raise ProjectError(
                f"{file}: configuration: the value of {short(key)} is of type {type(value).__name__}, not text; write "
                "it in quotes"
            )
    chosen = given.get(UNSUPPORTED, REFUSE)
    if chosen not in (REFUSE, RECOMPUTE):
        raise ProjectError(
            f"{file}: configuration: {UNSUPPORTED} is {short(chosen)}; it must be {REFUSE} (the default) or {RECOMPUTE}"
        )
    return dict(given)


def _includes(file: Path, given: object) -> tuple[str, ...]:
    """The patterns of ``libraries``, each of which names a file, or all files below a folder."""
    shape = "entries of the form - glob: {include: transformations/**} are expected"
    if not isinstance(given, list):
        raise ProjectError(f"{file}: libraries: {shape}")
    found = []
    for entry in given:
        inner = entry.get("glob") if isinstance(entry, dict) and len(entry) == 1 else None
        pattern = inner.get("include") if isinstance(inner, dict) and len(inner) == 1 else None
        if not isinstance(pattern, str) or not pattern:
            raise ProjectError(f"{file}: libraries: {shape}, not {short(str(entry))}")
        parts = PurePath(pattern)
        if parts.is_absolute() or ".." in parts.parts or "\0" in pattern:
            raise ProjectError(
                f"{file}: libraries: the pattern {short(pattern)} is outside the folder of the project; name files "
                "inside it"
            )
        everything = pattern.endswith("/**")
        if glob.has_magic(pattern[:-3] if everything else pattern):
            raise ProjectError(
                f"{file}: libraries: the pattern {short(pattern)} is not supported; name a file, or a folder with /** "
                "at the end, as transformations/**"
            )
        found.append(f"{pattern}/*" if everything else pattern)
    return tuple(found)


def _accepted() -> str:
    needed = " and ".join(_REQUIRED)
    return f"a specification has the fields {', '.join(_FIELDS)}; {needed} are needed"
