"""The worked example of docs/trie-join.md runs as shown."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "trie-join.md"


def test_the_worked_example_of_the_trie_join_page_runs() -> None:
    text = PAGE.read_text().replace("```", "")
    example = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    assert len(example.examples) > 10
    reported: list[str] = []
    results = doctest.DocTestRunner().run(example, out=reported.append)
    assert results.failed == 0, "".join(reported)
