"""Converts the messages of a source, such as a Kafka topic, to rows of a table.

A column is read from the key, the value or a header of the message, or from another column of the source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.avro.functions import from_avro

from freshviews.spark.connectors.message_format import HEADERS, KEY, OP, VALUE, Encoding, MessageFormat, Path
from freshviews.spark.io.columns import quoted, text_literal
from freshviews.spark.worker.rows import CORRUPT

_SPLIT = {VALUE: "_value", KEY: "_key"}
"""Columns with the parsed parts of messages."""
_NO_VALUE = "(no value: it deletes its key, which only changes 'upsert' takes)"


def rows_of(
    frame: DataFrame, message: MessageFormat, places: Sequence[str], defaults: Mapping[str, str]
) -> DataFrame:
    """The columns that ``message`` names, CORRUPT, and the columns ``places`` of the source, unchanged.

    ``defaults``: by column, the text that it has if JSON lacks its field. Raises Spark's error for a column that the
    source lacks.

    Text stays text until workers convert it. Workers never round: they refuse text that does not fit the type of its
    column. A JSON value is parsed as a VARIANT of Spark, which keeps the digits of decimals. Repeated fields, and text
    after the end of the object, are refused. A value that cannot be parsed is in the column CORRUPT, unchanged.
    """
    known = {name.lower(): field for name, field in zip(frame.columns, frame.schema, strict=True)}
    parts = [part for part in _SPLIT if part in known]
    for part in parts:
        encoding = message.encodings[part]
        if encoding.format is not None:
            frame = frame.withColumn(_SPLIT[part], _taken_apart(part, encoding, message.fields[part]))
    binary = {name for name, field in known.items() if isinstance(field.dataType, T.BinaryType)}
    columns = [
        f"{_or_default(_at(path, message, binary), path, message, defaults.get(column))} AS {quoted(column)}"
        for column, path in message.paths.items()
        if column != OP
    ]
    if message.by_key:
        op = "'upsert'" if OP not in message.paths else _at(message.paths[OP], message, binary)
        columns.append(f"IF({VALUE} IS NULL, 'delete', {op}) AS {quoted(OP)}")
    tests = [_wrong(part, message.encodings[part], part in binary) for part in parts]
    for path in message.paths.values():
        if path[0] == HEADERS:
            value = f"CAST({_last_header(path)} AS STRING)"
            tests.append(f"WHEN NOT is_valid_utf8({value}) THEN make_valid_utf8({value})")
    if VALUE in known and not message.by_key and any(path[0] == VALUE for path in message.paths.values()):
        tests.append(f"WHEN {VALUE} IS NULL THEN {text_literal(_NO_VALUE)}")
    corrupt = f"CASE {' '.join(tests)} END" if tests else "CAST(NULL AS STRING)"
    return frame.selectExpr(*columns, f"{corrupt} AS {quoted(CORRUPT)}", *map(quoted, places))


def _taken_apart(part: str, encoding: Encoding, fields: Sequence[str]) -> Column:
    """A parsed key or value; for JSON and Avro an array with it as the only element, because Spark ignores text after
    the end of a value, and returns a row of NULLs for unreadable Avro."""
    text = _text(part)
    if encoding.format == "json":
        return F.expr(f"try_parse_json(concat('[', {text}, ']'))")
    if encoding.format == "csv":
        schema = ", ".join(f"{quoted(name)} STRING" for name in (*fields, CORRUPT))
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT, **_options(encoding, "fields")}
        pairs = ", ".join(f"{text_literal(name)}, {text_literal(value)}" for name, value in options.items())
        return F.expr(f"from_csv({text}, {text_literal(schema)}, map({pairs}))")
    block = F.expr(f"concat(X'02', {part}, X'00')")  # one element, and no more
    schema = f'{{"type": "array", "items": {encoding.options["schema"]}}}'
    return from_avro(block, schema, {"mode": "PERMISSIVE", **_options(encoding, "schema")})


def _options(encoding: Encoding, ours: str) -> dict[str, str]:
    return {name: value for name, value in encoding.options.items() if name != ours}


def _at(path: Path, message: MessageFormat, binary: set[str]) -> str:
    """The expression of a path; text where its source is text or bytes."""
    first, *steps = path
    part = str(first)
    if part == HEADERS:
        return _text(_last_header(path))
    if not steps:
        return _text(quoted(part)) if part in binary else quoted(part)
    if message.encodings[part].format == "json":
        return _in_json(path, "string")
    whole = _SPLIT[part] if message.encodings[part].format == "csv" else f"get({_SPLIT[part]}, 0)"
    for step in steps:
        whole = f"get({whole}, {step})" if isinstance(step, int) else f"{whole}.{quoted(step)}"
    return whole


def _in_json(path: Path, kind: str) -> str:
    """A field of JSON as a type: NULL if it is missing. In a VARIANT, a written null is not SQL's NULL."""
    first, *steps = path
    found = "".join(f"[{step}]" if isinstance(step, int) else f"[{_key(step)}]" for step in steps)
    return f"try_variant_get({_SPLIT[str(first)]}, {text_literal('$[0]' + found)}, '{kind}')"


def _or_default(found: str, path: Path, message: MessageFormat, default: str | None) -> str:
    """The expression of a path, or a default text if the path is missing."""
    part = str(path[0])
    if default is None or len(path) == 1 or part not in _SPLIT or message.encodings[part].format != "json":
        return found
    return f"IF({_in_json(path, 'variant')} IS NULL, {text_literal(default)}, {found})"


def _last_header(path: Path) -> str:
    return f"try_element_at(filter({HEADERS}, h -> h.key = {text_literal(str(path[1]))}), -1).value"


def _wrong(part: str, encoding: Encoding, is_binary: bool) -> str:
    """SQL: WHEN a part cannot be parsed THEN its text."""
    split = _SPLIT[part]
    text = shown = _text(part)
    bad = []
    if is_binary and encoding.format != "avro":
        bad.append(f"NOT is_valid_utf8(CAST({part} AS STRING))")
    if encoding.format == "json":
        bad += [f"{split} IS NULL", f"NOT {text} RLIKE {text_literal(chr(92) + 's*' + chr(92) + '{')}"]
        bad.append(f"try_variant_get({split}, '$[1]', 'variant') IS NOT NULL")
    elif encoding.format == "csv":
        bad.append(f"{split}.{quoted(CORRUPT)} IS NOT NULL")
    elif encoding.format == "avro":
        bad.append(f"{split} IS NULL OR size({split}) <> 1")
        shown = f"hex({part})"
    return f"WHEN {part} IS NOT NULL AND ({' OR '.join(bad) or 'false'}) THEN {shown}"


def _text(expression: str) -> str:
    """Bytes or text as text that Arrow takes."""
    return f"make_valid_utf8(CAST({expression} AS STRING))"


def _key(name: str) -> str:
    return f'"{name}"' if "'" in name else f"'{name}'"
