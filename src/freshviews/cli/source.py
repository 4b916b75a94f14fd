"""Reads a script as text, and prints the place of an error in that text."""

from __future__ import annotations

import sys
from pathlib import Path

from freshviews.errors import FreshviewsError
from freshviews.records import dataclass
from freshviews.secrets import starred
from freshviews.spark.declarative.spec import is_project

STANDARD_INPUT = "-"
_WIDEST = 400
"""Most characters of the shown line of an error."""


@dataclass(frozen=True)
class Source:
    """A script: the name shown in messages, and its text."""

    name: str
    text: str


class ReadError(FreshviewsError):
    """A script cannot be read."""


class ScriptError(FreshviewsError):
    """A script has an error at a line and column, both 1-based; 0 if the place is unknown."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


def read(name: str) -> Source:
    """The script in a file, or on standard input if ``name`` is ``-``. Raises ReadError."""
    if not name:
        raise ReadError("the name of the script is empty; name a file with SQL, or - for standard input")
    if "\0" in name:
        raise ReadError(f"{name}: a file name cannot have a NUL character; name a file with SQL")
    if is_project(name):
        raise ReadError(
            f"{name}: a declarative project is not accepted here; name a file with SQL, or - for standard input"
        )
    shown = "<stdin>" if name == STANDARD_INPUT else name
    try:
        text = _bytes(name).decode("utf-8-sig")
        return Source(shown, text.replace("\r\n", "\n").replace("\r", "\n"))
    except FileNotFoundError:
        raise ReadError(f"{name}: no such file; name a file with SQL, or - for standard input") from None
    except IsADirectoryError:
        project = Path(name, "spark-pipeline.yml")
        inside = f", or the project {project}" if project.exists() else ""
        raise ReadError(f"{name} is a directory; name a file with SQL{inside}") from None
    except UnicodeDecodeError as error:
        raise ReadError(f"{shown}: byte {error.start} is not UTF-8 text; name a file with SQL") from None
    except OSError as error:
        raise ReadError(
            f"{shown}: cannot be read: {error.strerror}; make the file readable, or name another file with SQL"
        ) from None


def _bytes(name: str) -> bytes:
    if name != STANDARD_INPUT:
        return Path(name).read_bytes()
    if sys.stdin is None:  # closed by the caller
        raise ReadError("standard input is closed; name a file, or pipe the SQL in")
    return sys.stdin.buffer.read()


def error_text(source: Source, error: ScriptError) -> str:
    """``file:line:column: message``, the line of the error, and a caret under its column."""
    if not error.line:
        return f"{source.name}: {error}"
    where = f"{source.name}:{error.line}:{error.column}: {error}"
    lines = starred(source.text).splitlines()
    if error.line > len(lines):
        return where
    line = lines[error.line - 1]
    column = error.column - 1
    if len(line) > _WIDEST:
        first = max(0, column - _WIDEST // 2)
        line, column = line[first : first + _WIDEST], column - first
    # A tab before the column stays a tab, so that the caret is right at any tab width.
    before = "".join("\t" if char == "\t" else " " for char in line[:column])
    return f"{where}\n    {line}\n    {before}^"
