"""The examples of the documentation print the output shown."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.compiled(4)

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r"^```python\n(>>> .*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted(page for page in DOCS.glob("*.md") if _BLOCK.search(page.read_text()))


def test_the_list_of_pages_with_examples_is_not_empty() -> None:
    assert DOCS / "trie-join.md" in PAGES


@pytest.mark.long("each view of a page is compiled: a minute and more with others running")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_print_the_output_shown(page: Path) -> None:
    # The examples of a page share one session.
    session = "\n".join(_BLOCK.findall(page.read_text()))
    test = doctest.DocTestParser().get_doctest(session, {}, page.name, str(page), 0)
    reported: list[str] = []
    assert doctest.DocTestRunner().run(test, out=reported.append).failed == 0, "".join(reported)
