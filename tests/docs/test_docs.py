"""Names, links and pages of the documentation exist."""

from __future__ import annotations

import ast
import importlib
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
_CODE = re.compile(r"`([^`\n]+)`")
_DOTTED = re.compile(r"[a-z_]+(?:\.[A-Za-z_]+)+")
_LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)\s]*)?\)")
_PATH = re.compile(r"`([\w.]+(?:/[\w.]+)+/?)`")
_ROOMS = {path.name for path in (ROOT / "src" / "freshviews").iterdir() if path.is_dir()}
_FOLDERS = _ROOMS | {"src", "tests", "benchmarks", "docs", "demo", ".ci"}


def test_messages_never_mention_a_page_of_the_docs_folder() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        tree = ast.parse(path.read_text())
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                assert not re.search(r"docs/[\w/-]+\.md", node.value), f"{path}:{node.lineno}: {node.value}"


def resolve(name: str) -> object:
    """The module or attribute with a dotted name below ``freshviews``. Raises AttributeError."""
    parts = name.split(".")
    found: object = importlib.import_module("freshviews")
    path = "freshviews"
    for part in parts:
        path += "." + part
        if hasattr(found, part):
            found = getattr(found, part)
            continue
        try:
            found = importlib.import_module(path)
        except ModuleNotFoundError:
            fields = getattr(found, "__dataclass_fields__", {})
            if part not in fields:
                raise AttributeError(path) from None
            found = fields[part]
    return found


def names_in(text: str) -> set[str]:
    """Dotted names in backquotes that begin with a package of freshviews."""
    found: set[str] = set()
    for code in _CODE.findall(text):
        name = code.removesuffix("()")
        if _DOTTED.fullmatch(name) and name.split(".")[0] in _ROOMS and not name.endswith(".py"):
            found.add(name)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_function_that_a_page_mentions_exists(page: Path) -> None:
    for name in sorted(names_in(page.read_text())):
        resolve(name)


def test_the_architecture_page_mentions_more_than_40_functions() -> None:
    assert len(names_in((ROOT / "docs" / "architecture.md").read_text())) > 40


def test_the_check_notices_a_function_that_does_not_exist() -> None:
    with pytest.raises(AttributeError):
        resolve("engine.commit.no_such_function")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_has_a_target(page: Path) -> None:
    for target in _LINK.findall(page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    for page in (ROOT / "docs").glob("*.md"):
        if page.name != "README.md":
            assert f"({page.name})" in index, page.name


def test_every_benchmark_page_is_in_the_index_of_benchmark_pages() -> None:
    index = (ROOT / "docs" / "benchmarks.md").read_text()
    for page in (ROOT / "docs" / "benchmarks").glob("*.md"):
        assert f"(benchmarks/{page.name})" in index, page.name


def test_every_dependency_is_listed_with_its_reason() -> None:
    text = (ROOT / "docs" / "dependencies.md").read_text()
    read = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = read["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values(), *read["dependency-groups"].values()]
    for requirement in {one for group in groups for one in group}:
        name = re.split(r"[\[<>=~! ]", requirement)[0]
        assert f"| {name} |" in text, name


def test_the_map_of_the_architecture_shows_every_package() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    for room in _ROOMS - {"__pycache__"}:
        assert f"`{room}/`" in text, room


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_that_a_page_mentions_exists(page: Path) -> None:
    for path in _PATH.findall(page.read_text()):
        here, first = path.rstrip("/"), path.split("/")[0]
        if first in _FOLDERS and not path.startswith(("tests/cases", "benchmarks/data")):
            assert (ROOT / here).exists() or (ROOT / "src" / "freshviews" / here).exists(), path


def test_the_pages_mention_the_configured_share_of_random_examples() -> None:
    words = {10: "a tenth", 60: "a sixtieth"}
    tiers = (ROOT / "tests" / "tiers.py").read_text()
    share = re.search(r"^_SHARE_OF_A_RUN = (\d+)$", tiers, re.MULTILINE)
    fuzz = re.search(r"part fuzz SHARE=(\d+)", (ROOT / ".ci" / "run").read_text())
    assert share is not None and fuzz is not None
    for page in ("README.md", "CONTRIBUTING.md", "Makefile", ".ci/run"):
        text = " ".join((ROOT / page).read_text().replace("#", "").split())
        for found in re.findall(r"(an? \w+) of (?:the|their) random examples", text):
            assert found == words[int(share[1])], page
        for found in re.findall(r"(an? \w+) of (?:`make fuzz`|the random tests)", text):
            assert found == words[int(fuzz[1])], page
