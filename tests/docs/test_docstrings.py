"""Docstrings of all that a user reaches: each names parameters, result and errors, and its example runs.

The layout is that of NumPy. Examples go on from those of their class, and these from those of ``Database``, or of the
docstring of ``freshviews.learn`` or ``freshviews.stream``. Examples of Spark are parsed, not run.
"""

from __future__ import annotations

import builtins
import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from freshviews.errors import FreshviewsError

pytestmark = pytest.mark.plain_python(only=True)

SPARK = "freshviews.spark"
PACKAGES = ("freshviews", "freshviews.errors", "freshviews.dbapi", "freshviews.learn", "freshviews.stream", SPARK)
SPECIAL = ("__getitem__", "__iter__", "__len__")
SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Examples")

MADE_BY_FRESHVIEWS = {
    *("Batch", "Change", "Changes", "Explanation", "Query", "RowCounts", "Stats", "Subscription", "Table", "View"),
    *("Answer", "Connection", "Cursor"),
}
"""Classes whose constructor is not public."""

PARSED_ONLY = {"freshviews.errors.SourceError"}
"""Names outside of ``freshviews.spark`` whose example needs Spark."""


@dataclass(frozen=True)
class Public:
    """A public class, method, property or function. ``home``: the public class of a method."""

    package: str
    name: str
    thing: Any
    home: type | None = None

    @property
    def doc(self) -> str:
        return inspect.cleandoc(self.thing.__doc__ or "")


def members(package: str, home: type) -> Iterator[Public]:
    """The public members of a class, except those of a base that is public itself."""
    for name in dir(home):
        owner = next((base for base in home.__mro__ if name in vars(base)), home)
        is_public = not name.startswith("_") or name in SPECIAL
        if is_public and owner.__module__.startswith("freshviews."):
            thing = vars(owner)[name]
            if isinstance(thing, classmethod | property) or inspect.isfunction(thing):
                yield Public(package, f"{package}.{owner.__name__}.{name}", thing, home)


def public() -> list[Public]:
    found: dict[str, Public] = {}
    for package in PACKAGES:
        if package == SPARK and find_spec("pyspark") is None:
            continue
        module = importlib.import_module(package)
        names = getattr(module, "__all__", vars(module))
        things = {name: getattr(module, name, None) for name in names}
        own = {n: t for n, t in things.items() if (getattr(t, "__module__", None) or "").startswith("freshviews.")}
        classes = [thing for thing in own.values() if inspect.isclass(thing)]
        if package == "freshviews.errors":
            own = {name: thing for name, thing in own.items() if thing in classes}
        for thing in sorted(own.values(), key=lambda one: len(getattr(one, "__mro__", ()))):
            if inspect.isclass(thing) or inspect.isfunction(thing):
                name = f"{package}.{thing.__name__}"
                if not any(one.thing is thing for one in found.values()):
                    found[name] = Public(package, name, thing)
            if inspect.isclass(thing):
                for one in members(package, thing):
                    found.setdefault(one.name, one)
    return list(found.values())


PUBLIC = public()
NAMES = [one.name for one in PUBLIC]


def sections(doc: str) -> dict[str, list[str]]:
    """The sections of a docstring by name, with the text before them under an empty one."""
    lines = doc.split("\n")
    found: dict[str, list[str]] = {"": []}
    last = ""
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line and below == "-" * len(line):
            found[last := line] = []
        elif not re.fullmatch("-{3,}", line):
            found[last].append(line)
    return found


def entries(section: list[str]) -> list[str]:
    """The names that a section explains."""
    return [name for line in section if line and not line.startswith(" ") for name in line.split(", ")]


def parameters(function: Any) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in ("self", "cls")]


def asked(one: Public) -> tuple[list[str], bool]:
    """The parameters that a docstring must explain, and whether it must explain a result."""
    thing = one.thing
    if not inspect.isclass(thing):
        function = thing.__func__ if isinstance(thing, classmethod) else thing
        return parameters(function), inspect.signature(function).return_annotation not in ("None", None)
    if issubclass(thing, Exception):
        own = vars(thing).get("__init__")
        return [] if own is None else [name for name in parameters(own) if name not in ("message", "args")], False
    return [] if thing.__name__ in MADE_BY_FRESHVIEWS else parameters(thing), False


def errors() -> set[str]:
    """Names of all errors that are loaded."""
    left, names = [FreshviewsError], set(dir(builtins))
    while left:
        error = left.pop()
        names.add(error.__name__)
        left += error.__subclasses__()
    return names


def test_the_check_of_docstrings_covers_known_public_names() -> None:
    assert {"freshviews.Database.insert", "freshviews.View.subscribe", "freshviews.learn.PCA.transform"} <= set(NAMES)


@pytest.mark.parametrize("one", PUBLIC, ids=NAMES)
def test_a_docstring_explains_parameters_results_and_errors(one: Public) -> None:
    first, *rest = one.doc.split("\n")
    assert first.endswith(".") and (not rest or not rest[0]), f"{one.name}: its first line is a sentence alone"
    if isinstance(one.thing, property):
        return
    found = sections(one.doc)
    assert [*found][1:] == [name for name in SECTIONS if name in found], f"{one.name}: sections are {SECTIONS}"
    wanted, has_result = asked(one)
    explained = entries(found.get("Parameters", [])) + entries(found.get("Attributes", []))
    assert set(wanted) <= set(explained), f"{one.name} does not explain {set(wanted) - set(explained)}"
    if not inspect.isclass(one.thing):
        assert explained == wanted, f"{one.name} explains {explained}; it takes {wanted}"
        kind, *about = found.get("Returns", found.get("Yields", [""]))
        assert has_result == bool(kind), f"{one.name}: what does it return?"
        is_indented = all(not line or line.startswith("    ") for line in about)
        assert is_indented, f"{one.name}: its result is a type, then text"
    unknown = set(entries(found.get("Raises", []))) - errors()
    assert not unknown, f"{one.name} names no errors: {unknown}"
    assert ">>> " in one.doc, f"{one.name} has no example"


def session(one: Public) -> str:
    """The examples before those of a name, and its own."""
    package = one.package if one.package in ("freshviews.learn", "freshviews.stream") else "freshviews"
    first = importlib.import_module(package)
    texts = [getattr(first, "Database", first).__doc__, getattr(one.home, "__doc__", ""), one.doc]
    return "\n\n".join(dict.fromkeys(inspect.cleandoc(text or "") for text in texts))


@pytest.mark.parametrize("one", [one for one in PUBLIC if ">>> " in one.doc], ids=lambda one: one.name)
def test_the_example_of_a_docstring_prints_the_output_shown(
    one: Public, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = doctest.DocTestParser().get_doctest(session(one), {}, one.name, None, 0)
    for example in test.examples:
        compile(example.source, one.name, "single")
    if one.package == SPARK or one.name in PARSED_ONLY:
        return
    monkeypatch.chdir(tmp_path)
    printed: list[str] = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.DocTestRunner(optionflags=flags).run(test, out=printed.append).failed == 0, "".join(printed)
