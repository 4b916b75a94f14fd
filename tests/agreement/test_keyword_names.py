"""Random views whose tables and columns are named by keywords equal the views over the same names in backquotes;
keywords are in upper and lower case."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from sqlglot import Token, TokenType
from sqlglot.dialects.spark import Spark

from freshviews.catalog.catalog import Catalog
from freshviews.errors import FreshviewsError
from freshviews.sql.statements.sql_script import ViewDefs, parse_script
from tests.agreement.choices import seeded
from tests.agreement.states import GENERATORS
from tests.sql.keywords import KEYWORDS
from tests.sql.test_keywords import STRUCTURAL

pytestmark = pytest.mark.plain_python(only=True)

WORDS = [word for word in KEYWORDS if word not in STRUCTURAL | {"true", "false", "null", "not", "all", "distinct"}]
LITERALS = (TokenType.STRING, TokenType.NUMBER)


def written(text: str, names: Mapping[str, str], cases: random.Random | None) -> str:
    """A text with other names, and with its other words in upper or lower case as ``cases`` draws."""
    found, last = "", 0
    tokens: Sequence[Token] = Spark().tokenize(text)
    for token in tokens:
        word = text[token.start : token.end + 1]
        if token.token_type not in LITERALS and word.lower() in names:
            word = names[word.lower()]
        elif cases is not None and token.token_type not in LITERALS and word.isalpha() and word.isupper():
            word = word.lower() if cases.randrange(2) else word
        found += text[last : token.start] + word
        last = token.end + 1
    return found + text[last:]


def views(text: str) -> str:
    """The views of a script, or the message of its error. Names and quotes in messages are as in the original text."""
    try:
        found = repr([replace(one.view, sql="") for one in parse_script(text, Catalog()) if isinstance(one, ViewDefs)])
    except FreshviewsError as error:
        found = re.sub("^line [0-9]+, column [0-9]+: ", "", str(error))
    return found.replace("`", "").lower()


@pytest.mark.seeds(600)
def test_a_keyword_means_the_same_as_the_quoted_name_or_is_refused(seed: int) -> None:
    rng = random.Random(seed)
    found = GENERATORS[seed % len(GENERATORS)](seeded(seed))
    texts = [one.text.spark for one in (*found.tables, *found.plain, *found.views)]
    columns = dict.fromkeys(column.name for table in found.tables for column in table.columns)
    given = [*columns, *(table.name for table in found.tables)]
    words = dict(zip(map(str.lower, given), rng.sample(WORDS, len(given)), strict=True))
    quoted = {name: f"`{word}`" for name, word in words.items()}
    expected = views(";\n".join(written(text, quoted, None) for text in texts))
    text = ";\n".join(written(text, words, rng) for text in texts)
    made = views(text)
    # A word with another meaning is refused, and the message says what to write instead.
    assert made == expected or "backquotes" in made, f"{made}\n{text}"
