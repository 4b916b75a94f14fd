"""Writes the HTML pages of ``freshviews serve``; they have no scripts."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import quote, urlencode

import pyarrow as pa

from freshviews.cli.serving.forms import FORMS, Part
from freshviews.cli.serving.markup import Markup, tag
from freshviews.cli.units import duration, size
from freshviews.spark.reading.contents import Status

STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid #8884 }
th small { font-weight: normal; opacity: .7; display: block }
td.number { text-align: right }
.rows { overflow-x: auto }
.null { opacity: .5 }
.error { border-left: 4px solid #c33; padding: .2rem 1rem; white-space: pre-wrap }
pre { overflow-x: auto; background: #8881; padding: 1rem; font-size: 13px }
textarea { width: 100%; font: 14px monospace; box-sizing: border-box }
nav a, p.links a { margin-right: 1rem }
"""

_MOST_SHOWN = 2000
"""Most characters of a value that a page shows; the other forms show all."""


def view_link(view: str, **parameters: str | int) -> str:
    """The address of a view's page, or of its rows in another form."""
    return f"/view/{quote(view, safe='')}" + (f"?{urlencode(parameters)}" if parameters else "")


def _page(title: str, *parts: str) -> bytes:
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width"),
        tag("title", f"{title} - freshviews"),
        tag("link", rel="stylesheet", href="/style.css"),
    )
    body = tag("body", tag("nav", tag("a", "pipeline", href="/"), tag("a", "query", href="/query")), *parts)
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n".encode()


def status_page(name: str, status: Status, disk: Mapping[str, Mapping[str, int]]) -> bytes:
    """The pipeline: its version, tables, views and sinks."""
    state = {True: "running", False: "not running", None: "not known whether it runs"}[status.running]
    lines = [
        tag("p", f"Version {status.version}, {state}. Made {duration(status.age)} ago, delivered up to "
            f"{status.delivered}; lag {duration(status.lag)}; started {status.starts} times."),
        *([tag("p", f"Last error: {status.error}", class_="error")] if status.error else []),
        tag("h2", "Views"),
        _table(
            ["view", "rows", "changes out", "in memory", "sink"],
            [
                [tag("a", view, href=view_link(view)), _count(n.get("rows")), _count(n["changed"]),
                 size(n["bytes"]), _sink(status, view)]
                for view, n in status.views.items()
            ] + [[view, "", "", "", "backfilling" if status.running else "not there yet"] for view in status.filling],
        ),
        tag("h2", "Tables"),
        _table(
            ["table", "rows in", "set aside", "in memory", "waiting files"],
            [
                [table, _count(n["rows"]), _count(n["bad"]), size(n["bytes"]), _count(status.waiting.get(table))]
                for table, n in status.tables.items()
            ],
        ),
        tag("h2", "Checkpoint"),
        _table(
            ["part", "objects", "bytes"],
            [[part, _count(n["objects"]), size(n["bytes"])] for part, n in disk.items()]
            + [["all", _count(sum(n["objects"] for n in disk.values())), size(sum(n["bytes"] for n in disk.values()))]],
        ),
    ]  # fmt: skip
    return _page(name, tag("h1", name), *lines)


def _sink(status: Status, view: str) -> str:
    sink = status.sinks.get(view)
    refill = f"backfill with the new SELECT{'' if sink is None else '; '}" if view in status.refilling else ""
    if sink is None:
        return refill
    waits = f"waiting versions: {sink['backlog']}" if sink["backlog"] else "has every version"
    refused = f"; refused {sink['failures']:,} times" if sink["failures"] else ""
    return refill + waits + refused + (f": {status.refused[view]}" if view in status.refused else "")


def view_page(part: Part, view: str, limit: int, sql: str, plan: str) -> bytes:
    """Some rows of a view, and its plan."""
    held = {"version": part.version, "limit": limit}
    links = []
    if part.offset:
        links.append(tag("a", "first rows", href=view_link(view, **held)))
        links.append(tag("a", "rows before", href=view_link(view, **held, offset=max(0, part.offset - limit))))
    if part.offset + part.rows.num_rows < part.total:
        links.append(tag("a", "next rows", href=view_link(view, **held, offset=part.offset + limit)))
    forms = [tag("a", form.upper(), href=view_link(view, format=form)) for form in FORMS]
    return _page(
        view,
        tag("h1", view),
        _counted(part),
        tag("p", *links, class_="links") if links else "",
        _rows(part.rows),
        tag("p", "The last version as ", *forms, class_="links"),
        tag("h2", "Plan"),
        tag("pre", sql),
        tag("pre", plan),
    )


def query_page(part: Part | None, sql: str, error: str = "") -> bytes:
    """A form for a SELECT, and its result."""
    form = tag(
        "form",
        tag("p", tag("textarea", sql, name="sql", rows=4, maxlength=4000, aria_label="SELECT")),
        tag("p", tag("button", "run"), " columns, * or COUNT(*) of one view, with WHERE, ORDER BY, LIMIT, OFFSET"),
        action="/query",
    )
    found: list[str] = [tag("p", error, class_="error")] if error else []
    if part is not None:
        links = [tag("a", one.upper(), href=f"/query?{urlencode({'sql': sql, 'format': one})}") for one in FORMS]
        found = [_counted(part), _rows(part.rows), tag("p", *links, class_="links")]
    return _page("query", tag("h1", "query"), form, *found)


def error_page(status: HTTPStatus, message: str) -> bytes:
    """The page of an error."""
    return _page(str(status.value), tag("h1", f"{status.value} {status.phrase}"), tag("p", message, class_="error"))


def _counted(part: Part) -> Markup:
    shown = part.rows.num_rows
    which = f"Rows {part.offset + 1:,} to {part.offset + shown:,} of {part.total:,}" if shown else (
        f"No rows here, of {part.total:,}" if part.total else "No rows"
    )
    return tag("p", f"{which}, at version {part.version}.")


def _rows(rows: pa.Table) -> Markup:
    head = tag("tr", *(tag("th", one.name, tag("small", str(one.type))) for one in rows.schema))
    lines = []
    for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        lines.append(tag("tr", *(_cell(value) for value in row)))
    return tag("div", tag("table", tag("thead", head), tag("tbody", *lines)), class_="rows")


def _cell(value: object) -> Markup:
    if value is None:
        return tag("td", "NULL", class_="null")
    text = str(value)
    text = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}... ({len(text):,} characters)"
    is_number = not isinstance(value, str | bool) and text[-1:].isdigit() and "-" not in text[1:]
    return tag("td", text, class_="number") if is_number else tag("td", text)


def _table(names: list[str], lines: list[list[str]]) -> Markup:
    head = tag("tr", *(tag("th", name) for name in names))
    body = (tag("tr", *(tag("td", one) for one in line)) for line in lines)
    return tag("table", tag("thead", head), tag("tbody", *body))


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"

