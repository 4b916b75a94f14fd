"""The line of an error is printed without secrets, and no message is longer than a page."""

from __future__ import annotations

from freshviews.cli.source import Source, error_text
from freshviews.errors import SqlError


def test_an_error_prints_the_line_of_the_script_without_its_secrets() -> None:
    text = "USING jdbc OPTIONS (password 'one', \"api.key\" = 'two', dir 's3://me:three@host/b', path 'four') §"
    shown = error_text(Source("f.sql", text), SqlError("Unexpected token", 1, len(text)))
    assert not any(secret in shown for secret in ("one'", "two", "three"))
    assert "path 'four'" in shown
    assert shown.splitlines()[1].index("§") == shown.splitlines()[2].index("^")


def test_the_middle_of_a_long_message_is_left_out() -> None:
    message = str(SqlError("begins " + "x" * 100_000 + " ends", 1, 1))
    assert len(message) < 2100
    assert message.startswith("line 1, column 1: begins") and message.endswith(" ends")
