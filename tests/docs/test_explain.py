"""The outputs of ``freshviews explain`` in docs/explain.md equal those of the command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from freshviews.cli.main import app

pytestmark = pytest.mark.plain_python(only=True)

PAGE = Path(__file__).parents[2] / "docs" / "explain.md"
_SQL = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_EXAMPLE = re.compile(r"^```sql\n((?:(?!```).*\n)*)```\n\n```text\n((?:(?!```).*\n)*)```$", re.MULTILINE)
_PROGRAM = re.compile(r"\nprogram:\n.*?(?=\n(?:view|block) |\Z)", re.DOTALL)


def explained(script: str, whole: bool) -> str:
    """The output of the command for the views of a script; without programs and outputs unless ``whole``."""
    found = CliRunner().invoke(app, ["explain", "-"], input=script)
    assert found.exit_code == 0, found.stderr
    text = found.stdout if whole else _PROGRAM.sub("", found.stdout)
    return text.strip() + "\n"


def test_explain_prints_every_output_that_its_page_shows(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text()
    tables = _SQL.findall(text)[0]
    examples = _EXAMPLE.findall(text)
    assert len(examples) >= 20
    for view, shown in examples:
        printed = explained(tables + view, whole="program:" in shown)
        if request.config.getoption("--regenerate"):
            head = f"```sql\n{view}```\n\n```text\n"
            text = text.replace(f"{head}{shown}```", f"{head}{printed}```")
        else:
            assert printed == shown, "docs/explain.md differs; if that is meant, pytest --regenerate"
    if request.config.getoption("--regenerate"):
        PAGE.write_text(text)


def test_no_example_of_the_explain_page_recomputes_its_view() -> None:
    assert not re.search(r"^strategy +(recompute|trie_join)", PAGE.read_text(), re.MULTILINE)
