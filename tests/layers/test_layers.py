"""The shape of the source: packages import only packages before them, modules have docstrings, names are not vague."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "freshviews"

ORDER = (
    "records", "secrets", "errors", "tracebacks", "arguments", "printable", "progress", "display", "types", "kernel",
    "expr", "ring", "query", "catalog", "program", "plan", "codegen", "sql", "asking", "rules", "store", "wire",
    "engine", "dbapi", "learn", "stream", "cells", "advice", "spark", "doctor", "cli",
)  # fmt: skip
"""Each may import itself and the packages before it."""

BARRED = {
    ("sql", "ring"), ("sql", "program"), ("sql", "plan"), ("sql", "kernel"), ("sql", "codegen"),
    ("ring", "kernel"), ("query", "kernel"), ("catalog", "kernel"), ("plan", "kernel"), ("query", "ring"),
    ("store", "sql"), ("store", "plan"), ("store", "program"), ("store", "codegen"),
}  # fmt: skip
"""Imports that are forbidden although the order would allow them: importer, imported."""

NUMBERS_ABOVE = {"expr": ("numba",), "ring": ("numba", "numpy"), "query": ("numba", "numpy"),
                 "catalog": ("numba", "numpy"),
                 "program": ("numba", "numpy"), "plan": ("numba", "numpy"), "sql": ("numba", "numpy")}  # fmt: skip
"""Packages that a room does not import, so that planning works on names alone."""

VAGUE = {"util", "utils", "helper", "helpers", "common", "manager", "base", "misc", "stuff", "tools"}
MOST_ENTRIES = 19
"""Modules and packages in one package, besides its ``__init__``."""


@cache
def modules() -> tuple[Path, ...]:
    return tuple(sorted(SOURCE.rglob("*.py")))


def imported(path: Path) -> set[str]:
    """Dotted names of all modules that a module imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            module = node.module or ""
            found.add(module)
            if module == "freshviews":
                found.update(f"freshviews.{alias.name}" for alias in node.names)
    return found


def room_of(path: Path) -> str:
    """The room of a module, or its own name if it is at the top."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def test_every_package_has_a_place_in_the_order_of_imports() -> None:
    assert {room_of(path) for path in modules()} - {"__init__", "__main__"} <= set(ORDER)


@pytest.mark.parametrize("room", ORDER)
def test_a_package_imports_only_packages_before_it(room: str) -> None:
    for path in modules():
        if room_of(path) != room:
            continue
        for name in imported(path):
            if name.startswith("freshviews."):
                other = name.split(".")[1]
                assert other in ORDER, f"{path} imports {name}"
                assert ORDER.index(other) <= ORDER.index(room), f"{path} imports {name}, which stands above it"
                assert (room, other) not in BARRED, f"{path} imports {name}"


@pytest.mark.parametrize("room", NUMBERS_ABOVE)
def test_planning_imports_no_array_library(room: str) -> None:
    for path in (SOURCE / room).rglob("*.py"):
        seen = {name.split(".")[0] for name in imported(path)}
        assert seen.isdisjoint(NUMBERS_ABOVE[room]), path


ALONE = [("sqlglot", "sql asking engine"), ("duckdb", "asking"), ("typer", "cli"), ("rich", "cli"),
         ("llvmlite", "kernel"), ("numba", "kernel"), ("grpc", "wire"), ("sqlalchemy", "dbapi"),
         ("pyspark", "spark"), ("prometheus_client", "cli"), ("yaml", "spark")]  # fmt: skip


@pytest.mark.parametrize("package, room", ALONE)
def test_large_libraries_are_imported_only_by_listed_packages(package: str, room: str) -> None:
    users = {room_of(path) for path in modules() if package in {name.split(".")[0] for name in imported(path)}}
    assert users == set(room.split())


def test_no_module_has_a_vague_name() -> None:
    for folder in (SOURCE, ROOT / "tests", ROOT / "demo", ROOT / "benchmarks"):
        for path in folder.rglob("*.py"):
            assert VAGUE.isdisjoint({path.stem, path.parent.name}), path


def dotted(path: Path) -> str:
    """The name by which a module is imported."""
    parts = ("freshviews", *path.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def named() -> dict[str, Path]:
    return {dotted(path): path for path in modules()}


def packages() -> list[str]:
    return sorted(name for name, path in named().items() if path.name == "__init__.py")


BY_NAME = ("freshviews.kernel.machine.functions", "freshviews.kernel.compiler")
"""The one import that closes a circle: the compiler is made of kernels, and docs/architecture.md says why."""


@cache
def uses(path: Path) -> tuple[tuple[str, str], ...]:
    """Modules of freshviews that a module imports, each with the name imported from it, or with an empty name.

    A whole string that names a module is an import, too: by ``importlib``.
    """
    found: list[tuple[str, str]] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and node.value in named() and (dotted(path), node.value) != BY_NAME:
            found.append((node.value, ""))
        elif isinstance(node, ast.Import):
            found.extend((alias.name, "") for alias in node.names if alias.name in named())
        elif isinstance(node, ast.ImportFrom) and node.module in named():
            for alias in node.names:
                below = f"{node.module}.{alias.name}"
                found.append((below, "") if below in named() else (node.module or "", alias.name))
    return tuple(found)


def face_of(package: str) -> set[str]:
    """The names in ``__all__`` of a package: its modules, and names that its ``__init__`` defines or imports."""
    for node in ast.parse(named()[package].read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__":
            return set(ast.literal_eval(node.value))
    raise AssertionError(f"{package} has no __all__")


@pytest.mark.parametrize("package", [name for name in packages() if name != "freshviews"])
def test_imported_names_are_public_in_their_package(package: str) -> None:
    face = face_of(package)
    for path in modules():
        if dotted(path) == package or dotted(path).startswith(package + "."):
            continue
        for module, name in uses(path):
            if module.startswith(package + "."):
                name = module.removeprefix(package + ".").split(".")[0]
            elif module != package or not name:
                continue
            assert name in face, f"{path} imports {name} from {package}, which is not in its __all__"


@pytest.mark.parametrize("package", [name for name in packages() if name != "freshviews"])
def test_every_public_name_that_a_package_lists_exists(package: str) -> None:
    for name in face_of(package):
        found = f"{package}.{name}" in named() or hasattr(importlib.import_module(package), name)
        assert found, f"{package}.__all__ names {name}"


def members_used(package: str) -> dict[str, set[str]]:
    """For each module or package directly in a package, its siblings that it imports."""
    found: dict[str, set[str]] = {}
    for path in modules():
        if not dotted(path).startswith(package + "."):
            continue
        own = dotted(path).removeprefix(package + ".").split(".")[0]
        others = (m.removeprefix(package + ".").split(".")[0] for m, _ in uses(path) if m.startswith(package + "."))
        found.setdefault(own, set()).update(other for other in others if other != own)
    return found


@pytest.mark.parametrize("package", packages())
def test_the_modules_of_a_package_never_import_each_other_in_a_circle(package: str) -> None:
    left = members_used(package)
    while left:
        free = {name for name, used in left.items() if used.isdisjoint(left)}
        assert free, f"in {package}, these import each other in a circle: {sorted(left)}"
        left = {name: used for name, used in left.items() if name not in free}


@pytest.mark.parametrize("package", [name for name in packages() if name != "freshviews"])
def test_a_package_has_few_members(package: str) -> None:
    assert ast.get_docstring(ast.parse(named()[package].read_text())), package
    assert len([name for name in named() if name.rpartition(".")[0] == package]) <= MOST_ENTRIES


def test_every_module_has_a_docstring() -> None:
    for path in modules():
        assert ast.get_docstring(ast.parse(path.read_text())) or not path.read_text(), path


def is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(ROOT).parts)


def texts() -> list[Path]:
    """Files of the repository, or of the folder if it is not a repository."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    names = listed.stdout.split("\0") if listed.returncode == 0 else []
    paths = [ROOT / name for name in names if name] or [path for path in ROOT.rglob("*") if not is_hidden(path)]
    return [p for p in paths if p.is_file() and p.suffix in {".py", ".md", ".toml", ".sql", ".txt", ".json", ""}]


# In two parts, so that this file does not match itself.
LEFT_OVER = re.compile(
    r"/(?:" + r"work|tmp/v|root)/" + r"|\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b|\bfor " + r"now\b"
)


def test_no_file_mentions_how_it_was_made() -> None:
    for path in texts():
        found = LEFT_OVER.search(path.read_text(errors="replace"))
        assert found is None, f"{path}: {found.group()}"
