"""The examples of README.md print the output shown there."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
INDEX = README.parent / "docs" / "package.md"
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_blocks(text: str) -> list[tuple[str, str]]:
    """Run the python blocks of a text in one namespace; pairs of the printed and the shown output."""
    blocks = [(found.group(1), found.group(2)) for found in _FENCE.finditer(text)]
    scope: dict[str, object] = {}
    pairs = []
    for (language, source), (next_language, shown) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if language != "python":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, str(README), "exec"), scope)
        pairs.append((printed.getvalue(), shown if next_language == "text" else ""))
    return pairs


def test_python_blocks_of_the_readme_print_the_output_shown(request: pytest.FixtureRequest) -> None:
    text = README.read_text()
    pairs = run_blocks(text)
    assert len(pairs) >= 3
    if request.config.getoption("--regenerate"):
        for printed, shown in pairs:
            text = text.replace(f"```text\n{shown}```", f"```text\n{_trimmed(printed)}```")
        README.write_text(text)
        return
    for printed, shown in pairs:
        assert _trimmed(printed) == shown


def test_the_pypi_page_prints_the_output_shown() -> None:
    text = INDEX.read_text()
    assert [(_trimmed(printed), shown) for printed, shown in run_blocks(text) if shown] == [(shown_in(text),) * 2]
    assert not re.findall(r"\]\((?!https?://)[^)]*\)", text)


def shown_in(text: str) -> str:
    return next(found.group(2) for found in _FENCE.finditer(text) if found.group(1) == "text")


def _trimmed(text: str) -> str:
    return text.rstrip() + "\n" if text else ""


def test_the_first_screen_of_the_readme_has_commands() -> None:
    lines = README.read_text().splitlines()
    first_screen = lines[:50]
    assert any("print(view[" in line for line in lines[:80])
    assert any("make demo" in line for line in first_screen)
    assert any("make test" in line for line in first_screen)
    assert any(line.startswith("![") for line in first_screen[:15])
