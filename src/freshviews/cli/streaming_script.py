"""Reads the streaming script named on the command line, and finds its checkpoint."""

from __future__ import annotations

from pathlib import Path

from freshviews.cli.source import STANDARD_INPUT, ReadError, ScriptError, Source, error_text, read
from freshviews.errors import FreshviewsError, SqlError
from freshviews.spark.declarative.spec import is_project, read_spec
from freshviews.spark.declarative.state import state_of
from freshviews.spark.definition import Definition
from freshviews.spark.script import read_script
from freshviews.spark.state.stores.addresses import store_of
from freshviews.spark.state.stores.store import Store


def definition_of(name: str) -> Definition:
    """The pipeline of a script. Raises ReadError with the place in the file."""
    return definition_in(read(name), name)


def definition_in(source: Source, name: str, *, folders: bool = True) -> Definition:
    """The pipeline of a script that was read; ``name``: on the command line. ``folders``: require the folders of its
    tables to exist. Raises ReadError with the place in the file."""
    folder = Path.cwd() if name == STANDARD_INPUT else Path(name).absolute().parent
    try:
        return read_script(source.text, folder, folders=folders)
    except SqlError as error:
        raise ReadError(message_with_place(source, error)) from error


def message_with_place(source: Source, error: SqlError) -> str:
    """The message of an error, with its place in a script."""
    message = str(error).removeprefix(f"line {error.line}, column {error.column}: ")
    return error_text(source, ScriptError(message, error.line, error.column))


def checkpoint_of(name: str, given: str | None) -> Store:
    """The checkpoint's store: at the address given, in a folder beside the script, or that of the project's last run.
    Raises AddressError, and ProjectError."""
    if given is None and is_project(name):
        return state_of(read_spec(name))
    return store_of(given if given is not None else Path(name).absolute().with_suffix(".checkpoint"))


def definition_if_readable(name: str) -> Definition | None:
    """The pipeline of a script, or None if it cannot be read: it only gives the folders of waiting files."""
    try:
        return definition_of(name)
    except FreshviewsError:
        return None
