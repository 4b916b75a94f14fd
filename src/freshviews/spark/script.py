"""Parses a script of streaming SQL into the definition of a pipeline. Parsing does not start Spark."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from freshviews.catalog.definitions import PlainView, TableDef, ViewDef
from freshviews.errors import SqlError, hiding_secrets
from freshviews.spark.connectors import polls
from freshviews.spark.connectors.declarations import OUTPUTS, connector_of, is_folder, lacking, refusal
from freshviews.spark.connectors.message_format import OP, MessageError, message_format, split_options
from freshviews.spark.connectors.polls import Poll
from freshviews.spark.definition import Alteration, Definition, TableSpec, ViewSpec, catalog_of, form_of, with_key
from freshviews.sql import Catalog
from freshviews.sql.statements.streaming import Option, Split, Using, split_streaming
from freshviews.stream.formats import FormatError, check_format

_FORM_OPTIONS = ("order", "timestamps", "decimals", "column")
_OWN_OPTIONS = (*_FORM_OPTIONS[1:3], "changes", "bad_rows", "output", *polls.OPTIONS[1:])
"""Options with names of our own: no source of Spark has one that differs from them by a letter."""
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_CREATE_FUNCTION = re.compile(
    r"CREATE\s+(?:OR\s+REPLACE\s+)?((?:AGGREGATE\s+)?FUNCTION)\s+(?:IF\s+NOT\s+EXISTS\s+)?", re.IGNORECASE
)
_CREATE_VIEW = re.compile(r"CREATE\s+(OR\s+REPLACE\s+)?VIEW\s+(IF\s+NOT\s+EXISTS\s+)?", re.IGNORECASE)


@hiding_secrets
def read_script(
    text: str, folder: Path, environment: Mapping[str, str] = os.environ, *, folders: bool = True
) -> Definition:
    """Return the pipeline that a script defines.

    Paths are relative to ``folder``; ``${NAME}`` and ``${NAME:-default}`` in options are environment variables.
    ``folders``: the folders of tables must exist. Raises SqlError, with line and column.
    """
    streaming = split_streaming(text)
    catalog = catalog_of(streaming.sql)
    definition = Definition(settings={name: _expanded(one, environment) for name, one in streaming.settings.items()})
    for number, one in enumerate(streaming.statements):
        if one.kind == "alter":
            before, later = streaming.statements[:number], streaming.statements[number:]
            altered = catalog.table(str(one.name))
            assert altered is not None
            made_before = _plain_views_of_tables(before, {str(other.name).lower() for other in later}, catalog)
            change = Alteration(altered.name, one.sql, len(definition.views), made_before)
            definition = replace(definition, alterations=(*definition.alterations, change))
            continue
        if one.kind == "function":
            continue
        options = _options(one.using, environment) if one.using is not None else {}
        if one.kind == "table":
            assert one.using is not None
            table = catalog.table(str(one.name))
            assert table is not None
            definition = definition.with_table(_table(one, table, one.using, options, folder, folders))
            _check_form(one.using, definition.tables[-1], table)
        else:
            view = catalog.view(str(one.name))
            if view is None:
                if one.using is not None:
                    message = f"view {one.name} is not materialised, so it has no output; CREATE MATERIALIZED VIEW"
                    raise SqlError(message, one.using.line, one.using.column)
                continue
            made = _view(one, view.name, options, folder)
            if one.using is not None:
                try:
                    made = with_key(made, catalog)
                except MessageError as error:
                    raise SqlError(f"view {view.name}: {error}", *_place_of(one.using, error)) from None
            made = replace(made, sql=";\n".join((*_functions(view, catalog), *_plain_views(view, catalog), made.sql)))
            # CREATE OR REPLACE may define a view twice in a file.
            definition = definition.without((view.name,)).with_view(made)
    of_sources = [connector_of(provider).settings for provider in definition.providers]
    needed = {name: value for settings in of_sources for name, value in settings.items()}
    return replace(definition, settings={**needed, **definition.settings})


def _functions(view: ViewDef | PlainView, catalog: Catalog) -> list[str]:
    """Statements that create the functions a view calls, unless another view has created them before."""
    wanted = set(view.functions)
    for one in reversed([*catalog.functions.values()]):
        wanted.update(one.called if one.name.lower() in wanted else ())
    return [
        _CREATE_FUNCTION.sub(r"CREATE \1 IF NOT EXISTS ", one.sql, count=1)
        for one in catalog.functions.values()
        if one.name.lower() in wanted
    ]


def _plain_views(view: ViewDef, catalog: Catalog) -> list[str]:
    """Statements that create the plain views a view expands, unless another view has created them before."""
    wanted = {name.lower() for name in view.expanded}
    return [
        _CREATE_VIEW.sub("CREATE VIEW IF NOT EXISTS ", one.sql, count=1)
        for one in catalog.plain.values()
        if one.name.lower() in wanted
    ]


def _plain_views_of_tables(before: Sequence[Split], anew: Collection[str], catalog: Catalog) -> tuple[str, ...]:
    """Statements of a script that create plain views over tables alone for some statements, except those created again
    later (``anew``), by their names in lower case."""
    made: dict[str, str] = {}
    for one in before:
        name = str(one.name).lower()
        view = catalog.plain_view(name) if one.kind == "view" and name not in anew else None
        if view is not None and all(catalog.view(name) is None for name in view.inputs):
            # A replaced view counts with its last form, at that place.
            made.pop(name, None)
            created = _CREATE_VIEW.sub("CREATE VIEW IF NOT EXISTS ", one.sql, count=1)
            made[name] = ";\n".join((*_functions(view, catalog), created))
    return tuple(made.values())


def _options(using: Using, environment: Mapping[str, str]) -> dict[str, str]:
    for name, option in using.options.items():
        meant = get_close_matches(name.lower(), _OWN_OPTIONS, n=1, cutoff=0.8)
        if meant and meant[0] != name.lower():
            message = f"unknown option {name}; did you mean {meant[0]}?"
            raise SqlError(message, option.line, option.column)
    return {name: _expanded(option, environment) for name, option in using.options.items()}


def _expanded(option: Option, environment: Mapping[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        name, default = found.group(1), found.group(2)
        known = environment.get(name, default)
        if known is None:
            raise SqlError(
                f"the environment variable {name} is not set; set it, or write ${{{name}:-default}}",
                option.line,
                option.column,
            )
        return str(known)

    return _VARIABLE.sub(value, option.value)


def _table(
    one: Split, table: TableDef, using: Using, options: dict[str, str], folder: Path, folders: bool
) -> TableSpec:
    name, options = table.name, dict(options)
    own = {key: options.pop(_spelled(options, key)) for key in _FORM_OPTIONS if _spelled(options, key) in options}
    changes = options.pop(_spelled(options, "changes"), None)
    bad_rows = options.pop(_spelled(options, "bad_rows"), None)
    connector = connector_of(using.provider)
    poll = _poll(name, using, options)
    if poll is not None and changes is None:
        changes = "upsert" if table.has_primary_key else "append"
    _check_options(f"table {name}", using, options, connector.reading)
    form = (changes or "").strip().lower()
    if poll is not None:
        _check_polled(name, using, form)
        if form == "upsert":
            own.setdefault("order", poll.column)
    in_messages: dict[str, str] | None = None
    if (connector.messages and form not in ("debezium", "debezium-upsert")) or _spelled(options, "values") in options:
        in_messages, options = split_options(options)
        for option in ("values.schema", "keys.schema"):
            if option in in_messages:
                in_messages[option] = _schema_text(using, option, in_messages[option], folder)
        if form == "upsert":
            own["op"] = OP
    elif form == "upsert" and _spelled(options, "op") in options:
        own["op"] = options.pop(_spelled(options, "op"))
    if connector.path:
        key = _spelled(options, "path")
        if key not in options:
            raise SqlError(f"table {name}: {using.provider} needs OPTIONS (path '...')", using.line, using.column)
        options[key] = _resolved(options[key], folder)
        plain = folders and is_folder(options[key])
        if plain and not Path(options[key]).exists():
            message = f"table {name}: there is no folder {options[key]}; make it, empty or with files"
            raise SqlError(message, using.options[key].line, using.options[key].column)
        if plain and changes != "snapshot" and not Path(options[key]).is_dir():
            message = f"table {name}: {options[key]} is a file; a folder that receives files is accepted"
            raise SqlError(message, using.options[key].line, using.options[key].column)
    return TableSpec(
        name,
        one.sql,
        using.provider,
        options,
        changes,
        own,
        None if bad_rows is None else _resolved(bad_rows, folder),
        in_messages,
        poll,
    )


def _poll(name: str, using: Using, options: dict[str, str]) -> Poll | None:
    """How a table is polled; its options are taken from the others."""
    own = {key: options.pop(_spelled(options, key)) for key in polls.OPTIONS if _spelled(options, key) in options}
    try:
        return polls.poll_of(own)
    except polls.PollError as error:
        option = using.options[_spelled(using.options, error.option)]
        raise SqlError(f"table {name}: {error}", option.line, option.column) from None


def _check_polled(name: str, using: Using, form: str) -> None:
    """Raise SqlError if a table cannot be polled."""
    option = using.options[_spelled(using.options, "poll")]
    if not connector_of(using.provider).tables:
        message = f"table {name}: poll is for a table of a database; {using.provider} reads its new rows without poll"
        raise SqlError(message, option.line, option.column)
    if form == "snapshot":
        message = f"table {name}: poll reads the new rows, and changes 'snapshot' reads all rows; leave one out"
        raise SqlError(message, option.line, option.column)


def _schema_text(using: Using, option: str, text: str, folder: Path) -> str:
    """A schema of Avro: the text given, or that of the file named."""
    if text.lstrip()[:1] in ("{", "[", '"'):
        return text
    try:
        return Path(_resolved(text, folder)).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        found = using.options[_spelled(using.options, option)]
        raise SqlError(f"{option} {text!r} cannot be read: {reason}", found.line, found.column) from None


def _check_options(who: str, using: Using, options: Mapping[str, str], needed: tuple[tuple[str, ...], ...]) -> None:
    """Raise SqlError if an option is missing, or has a value under which rows would be lost."""
    missing = lacking(options, needed)
    if missing is not None:
        raise SqlError(f"{who}: {using.provider} needs the option {' or '.join(missing)}", using.line, using.column)
    refused = refusal(connector_of(using.provider), options)
    if refused is not None:
        option = using.options[refused[0]]
        raise SqlError(f"{who}: {refused[0]} {option.value!r}: {refused[1]}", option.line, option.column)


def _check_form(using: Using, spec: TableSpec, table: TableDef) -> None:
    option = next((o for key, o in using.options.items() if key.lower() == "changes"), None)
    place = (option.line, option.column) if option is not None else (using.line, using.column)
    try:
        form = form_of(spec.changes, spec.form_options, ())
        check_format(form, table)
        if spec.message is not None:
            message_format(spec.message, table, form)
    except FormatError as error:
        raise SqlError(str(error), *place) from None
    except MessageError as error:
        raise SqlError(f"table {table.name}: {error}", *_place_of(using, error)) from None


def _place_of(using: Using, error: MessageError) -> tuple[int, int]:
    option = using.options.get(_spelled(using.options, error.option))
    return (using.line, using.column) if option is None else (option.line, option.column)


def _view(one: Split, name: str, options: dict[str, str], folder: Path) -> ViewSpec:
    if one.using is None:
        return ViewSpec(name, one.sql)
    options = dict(options)
    key = _spelled(options, "output")
    output = options.pop(key, OUTPUTS[0]).lower()
    connector = connector_of(one.using.provider)
    if output not in connector.outputs:
        option = one.using.options[key]
        accepted = " or ".join(map(repr, connector.outputs))
        raise SqlError(f"output of {one.using.provider} must be {accepted}, not {output!r}", option.line, option.column)
    _check_options(f"view {name}", one.using, options, connector.writing)
    path = _spelled(options, "path")
    if path in options and not connector.named:
        options[path] = _resolved(options[path], folder)
    elif connector.path:
        message = f"view {name}: {one.using.provider} needs OPTIONS (path '...')"
        raise SqlError(message, one.using.line, one.using.column)
    return ViewSpec(name, one.sql, one.using.provider, options, output)


def _spelled(options: Mapping[str, object], key: str) -> str:
    """The option's name as written, in any case."""
    return next((name for name in options if name.lower() == key), key)


def _resolved(path: str, folder: Path) -> str:
    if path.startswith("file:"):
        path = re.sub(r"^file:(//)?", "", path)
    return path if "://" in path else str((folder / path).absolute())
