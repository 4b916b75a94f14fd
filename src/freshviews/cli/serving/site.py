"""Checks and answers the HTTP requests of ``freshviews serve``. Requests are checked because anyone may send them.

The path ``/`` shows the pipeline, ``/view/NAME`` a view, and ``/query?sql=`` the result of a SELECT. The parameter
``format`` is html, json, csv or arrow.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from dataclasses import asdict, replace
from http import HTTPStatus
from threading import Lock
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa

from freshviews.asking import SelectProcesses
from freshviews.cli.serving.forms import FORMS, MOST_BYTES, Part, TooLong
from freshviews.cli.serving.pages import STYLE, error_page, query_page, status_page, view_page
from freshviews.cli.serving.server import Answer, Request
from freshviews.cli.serving.versions import Refused, Versions, plan_text
from freshviews.errors import FreshviewsError
from freshviews.records import dataclass
from freshviews.spark.definition import Definition
from freshviews.spark.reading.contents import status
from freshviews.spark.reading.disk import on_disk
from freshviews.spark.state.stores.store import Store

MOST_ROWS = 1_000_000
"""Most rows of an answer, unless ``--max-rows`` says otherwise."""
ANSWER_SECONDS = 60.0
"""Seconds from a request until its answer is sent or cut off."""
_FIRST_ROWS = {"html": 50, "json": 1000}
"""Number of rows if a request has no limit; the other forms have all rows."""
_MOST_ON_PAGE = 1000

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")
HERE = frozenset({"127.0.0.1", "localhost", "[::1]"})

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_HTML = "text/html; charset=utf-8"


@dataclass(frozen=True)
class Parameters:
    """The parameters of a request."""

    form: str
    limit: int | None
    offset: int
    version: int | None
    sql: str | None


class Site:
    """The answers for one script or project.

    The Host header of a request must name this server. This stops DNS rebinding: a page of another site, whose name was
    made to resolve to this server, cannot read the answers.
    """

    def __init__(
        self,
        name: str,
        store: Callable[[], Store],
        definition: Callable[[], Definition | None],
        hosts: Collection[str] = (),
        most_rows: int = MOST_ROWS,
    ) -> None:
        """``name``: the script's. ``store``: finds the checkpoint for each request. ``hosts``: names of this server
        besides those of the machine itself."""
        self._name = name
        self._store = store
        self._last: Versions | None = None
        self._finding = Lock()
        self._processes = SelectProcesses(1)
        self._definition = definition
        self._hosts = HERE | {host.lower() for host in hosts}
        self._most_rows = most_rows

    def start(self) -> None:
        """Start the process that answers SELECTs, so that the first one need not wait for it."""
        self._processes.start()

    def close(self) -> None:
        """End the processes that answer SELECTs."""
        self._processes.close()

    @property
    def versions(self) -> Versions:
        """The versions of the checkpoint; all readers of this process share them."""
        return self._versions

    @property
    def _versions(self) -> Versions:
        with self._finding:
            store = self._store()
            if self._last is None or self._last.store is not store:
                self._last = Versions(store, self._processes)
            return self._last

    def answer(self, request: Request) -> Answer:
        """The answer to a request, with headers that let browsers only show it."""
        try:
            made = self._answer(request)
        except Refused as error:
            made = Answer(error.status, _HTML, error_page(error.status, str(error)))
        except FreshviewsError as error:
            made = _error(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        except OSError as error:
            message = f"the checkpoint cannot be read: {error.strerror or type(error).__name__}"
            made = _error(HTTPStatus.INTERNAL_SERVER_ERROR, message)
        except Exception as error:
            made = _error(HTTPStatus.INTERNAL_SERVER_ERROR, f"an error inside freshviews: {type(error).__name__}")
        return replace(made, headers={**_HEADERS, **made.headers})

    def _answer(self, request: Request) -> Answer:
        self._check_host(request)
        if not request.target.startswith("/"):
            raise Refused(HTTPStatus.BAD_REQUEST, "the path must begin with /")
        path, query = _split(request.target)
        if path == "/style.css":
            return Answer(HTTPStatus.OK, "text/css; charset=utf-8", STYLE.encode())
        asked = _parsed(query)
        if path == "/":
            return self._status(asked)
        if path == "/query":
            return self._query(asked)
        if path.startswith("/view/"):
            return self._view(path.removeprefix("/view/"), asked)
        raise Refused(HTTPStatus.NOT_FOUND, "there is no such page; the pages are /, /query and /view/NAME")

    def _check_host(self, request: Request) -> None:
        found = _HOST.fullmatch(request.hosts[0]) if len(request.hosts) == 1 else None
        if found is None or found[1].lower() not in self._hosts:
            raise Refused(
                HTTPStatus.MISDIRECTED_REQUEST,
                "the header Host does not name this server; start the server with --allow-host NAME to accept "
                "another name",
            )

    def _status(self, asked: Parameters) -> Answer:
        if asked.form not in ("html", "json"):
            raise Refused(HTTPStatus.BAD_REQUEST, "format: html and json are accepted here")
        versions = self._versions
        manifest = versions.at(None)
        found = status(versions.store, self._definition())
        disk = on_disk(versions.store)
        version = {"Freshviews-Version": str(max(manifest.version, found.version))}
        if asked.form == "json":
            text = json.dumps({**asdict(found), "disk": disk}, ensure_ascii=False)
            return Answer(HTTPStatus.OK, FORMS["json"][0], f"{text}\n".encode(), version)
        return Answer(HTTPStatus.OK, _HTML, status_page(self._name, found, disk), version)

    def _view(self, name: str, asked: Parameters) -> Answer:
        if asked.sql is not None:
            raise Refused(HTTPStatus.BAD_REQUEST, "sql is accepted only at /query")
        manifest, view, rows = self._versions.rows(asked.version, name)
        part = self._part(rows, manifest.version, {"view": view}, asked)
        if asked.form != "html":
            return _rows_in(asked.form, part, view)
        limit = asked.limit or _FIRST_ROWS["html"]
        page = view_page(part, view, limit, manifest.views[view], plan_text(manifest, view))
        return Answer(HTTPStatus.OK, _HTML, page, _source_of(part))

    def _query(self, asked: Parameters) -> Answer:
        sql = (asked.sql or "").strip()
        if asked.form != "html":
            return _rows_in(asked.form, self._selected(sql, asked), "query")
        if not sql:
            return Answer(HTTPStatus.OK, _HTML, query_page(None, ""))
        try:
            part = self._selected(sql, asked)
        except Refused as error:
            return Answer(error.status, _HTML, query_page(None, sql, str(error)))
        return Answer(HTTPStatus.OK, _HTML, query_page(part, sql), _source_of(part))

    def _selected(self, sql: str, asked: Parameters) -> Part:
        manifest, rows = self._versions.select(asked.version, sql)
        return self._part(rows, manifest.version, {"sql": sql}, asked)

    def _part(self, rows: pa.Table, version: int, of: dict[str, str], asked: Parameters) -> Part:
        most = min(self._most_rows, _MOST_ON_PAGE) if asked.form == "html" else self._most_rows
        limit = _FIRST_ROWS.get(asked.form) if asked.limit is None else asked.limit
        if limit is None and rows.num_rows - asked.offset > most:
            raise Refused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"there are {rows.num_rows:,} rows, and an answer has at most {most:,}; read the rows in "
                f"several requests with limit and offset, and version={version} in each",
            )
        if limit is not None and limit > most and asked.limit is not None:
            raise Refused(HTTPStatus.BAD_REQUEST, f"limit: at most {most:,} is accepted")
        shown = rows.slice(asked.offset, most if limit is None else min(limit, most))
        return Part(version, of, shown, asked.offset, rows.num_rows)


def _split(target: str) -> tuple[str, str]:
    try:
        parts = urlsplit(target)
        return unquote(parts.path, errors="strict"), parts.query
    except ValueError:  # UnicodeDecodeError, too
        raise Refused(HTTPStatus.BAD_REQUEST, "the address is not text in UTF-8") from None


def _parsed(query: str) -> Parameters:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict", max_num_fields=8)
    except ValueError:
        raise Refused(HTTPStatus.BAD_REQUEST, "there are too many parameters, or they are not text in UTF-8") from None
    given = dict(pairs)
    for name in given:
        if name not in ("format", "limit", "offset", "version", "sql"):
            raise Refused(
                HTTPStatus.BAD_REQUEST,
                "unknown parameter; the accepted parameters are format, limit, offset, version and sql",
            )
    if len(given) < len(pairs):
        raise Refused(HTTPStatus.BAD_REQUEST, "a parameter of the address is given twice; give each parameter once")
    form = given.get("format", "html")
    if form not in ("html", *FORMS):
        raise Refused(HTTPStatus.BAD_REQUEST, f"format: html, {', '.join(FORMS)} are accepted")
    return Parameters(
        form, _number(given, "limit", 1), _number(given, "offset") or 0, _number(given, "version"), given.get("sql")
    )


def _number(given: dict[str, str], name: str, least: int = 0) -> int | None:
    if name not in given:
        return None
    if not re.fullmatch(r"[0-9]{1,12}", given[name]) or int(given[name]) < least:
        raise Refused(HTTPStatus.BAD_REQUEST, f"{name}: a whole number of {least} or more is accepted")
    return int(given[name])


def _rows_in(form: str, part: Part, name: str) -> Answer:
    kind, write = FORMS[form]
    try:
        body = write(part)
    except TooLong:
        raise Refused(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            f"the answer has more than {MOST_BYTES >> 20} MB; read the rows in several requests with "
            f"limit and offset, and version={part.version} in each",
        ) from None
    headers = _source_of(part)
    if form != "json":
        file = re.sub(r"[^A-Za-z0-9_]", "_", name)
        headers["Content-Disposition"] = f'attachment; filename="{file}-{part.version}.{form}"'
    return Answer(HTTPStatus.OK, kind, body, headers)


def _source_of(part: Part) -> dict[str, str]:
    return {"Freshviews-Version": str(part.version), "Freshviews-Total-Rows": str(part.total)}


def _error(status: HTTPStatus, message: str) -> Answer:
    return Answer(status, _HTML, error_page(status, message))
