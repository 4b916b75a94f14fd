"""The examples on the page about rules print the output shown."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

pytestmark = pytest.mark.plain_python(only=True)
PAGE = Path(__file__).parents[2] / "docs" / "rules.md"


def test_the_examples_of_the_rules_page_run() -> None:
    text = PAGE.read_text().replace("```python\n", "").replace("```\n", "")
    examples = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    assert len(examples.examples) > 10
    reported: list[str] = []
    found = doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL).run(examples, out=reported.append)
    assert found.failed == 0, "".join(reported)
