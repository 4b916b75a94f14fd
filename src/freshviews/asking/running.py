"""Runs a SELECT in DuckDB over Arrow tables. DuckDB cannot access files, settings or extensions.

Each SELECT has its own connection, in which only the relations that it names exist.
"""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from threading import Event, Thread
from typing import Any

import pyarrow as pa

from freshviews.asking.functions import MACROS
from freshviews.asking.meaning import OWN
from freshviews.asking.own_functions import make_known
from freshviews.asking.translation import Translation
from freshviews.errors import FreshviewsError, NoDuckDB, OutOfMemory, SqlError, UnsupportedSql
from freshviews.records import dataclass

REMEDY = "db.sql needs DuckDB; install it with: pip install 'freshviews[sql]'"

_MOST_THREADS = 4
_BATCH = 100_000
_SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
}


@dataclass(frozen=True)
class Limits:
    """The limits of a SELECT: seconds, and bytes of its rows; None: no limit."""

    seconds: float | None = None
    size: int | None = None


def run(
    translation: Translation,
    relations: Mapping[str, pa.Table],
    values: Sequence[Any] = (),
    limits: Limits | None = None,
) -> pa.Table:
    """The rows of a SELECT. ``relations``: by the names in ``translation.reads``.

    Ctrl-C stops it. Raises SqlError for a value that cannot be computed, FreshviewsError for more than ``limits``.
    """
    limits = limits or Limits()
    connection = _connected(translation, relations)
    work = _Work(connection, translation.sql, list(values), limits.size)
    # DuckDB does not look for signals, so it runs in a thread, and this one waits.
    work.start()
    try:
        if not work.done.wait(limits.seconds):
            _stop(work)
            raise FreshviewsError(
                f"the SELECT took more than {limits.seconds:g} s and was stopped; read fewer rows, or simplify the "
                "SELECT"
            )
    except BaseException:
        _stop(work)
        raise
    finally:
        connection.close()
    if work.error is not None:
        raise _plain(work.error) from None
    return work.rows.rename_columns(list(translation.names))


class _Work(Thread):
    """Runs DuckDB's text in a thread."""

    def __init__(self, connection: Any, sql: str, values: list[Any], size: int | None) -> None:
        super().__init__(name="freshviews-sql", daemon=True)
        self.done = Event()
        self.rows: Any = None
        self.error: Exception | None = None
        self.connection = connection
        self._given = sql, values, size

    def run(self) -> None:
        sql, values, size = self._given
        try:
            found = self.connection.sql(sql, params=values)
            self.rows = found.to_arrow_table() if size is None else _collected(found.to_arrow_reader(_BATCH), size)
        except Exception as error:
            self.error = error
        finally:
            self.done.set()


def _stop(work: _Work) -> None:
    while not work.done.is_set():
        work.connection.interrupt()
        work.done.wait(0.01)


@contextmanager
def reading(
    translation: Translation, relations: Mapping[str, pa.Table], values: Sequence[Any], memory: str
) -> Iterator[pa.RecordBatchReader]:
    """The rows of a SELECT as they are computed, in a process that does nothing else. Raises as ``run``. ``memory``:
    what DuckDB may take."""
    connection = _connected(translation, relations, memory)
    try:
        yield connection.sql(translation.sql, params=list(values)).to_arrow_reader(_BATCH)
    except Exception as error:
        raise _plain(error) from None
    finally:
        connection.close()


def within(batches: Iterable[pa.RecordBatch], size: int | None) -> Iterator[pa.RecordBatch]:
    """Some batches. Raises FreshviewsError when they have more bytes."""
    total = 0
    for batch in batches:
        total += batch.nbytes
        if size is not None and total > size:
            raise FreshviewsError(f"the answer has more than {size >> 20} MB; select fewer rows or columns")
        yield batch


def _collected(batches: pa.RecordBatchReader, size: int) -> pa.Table:
    return pa.Table.from_batches(within(batches, size), batches.schema)


def _connected(translation: Translation, relations: Mapping[str, pa.Table], memory: str = "25%") -> Any:
    """A connection in which only some relations exist."""
    duckdb = _duckdb(os.getpid(), memory)
    make_known(duckdb, translation.functions)
    connection = duckdb.cursor()
    for name, rows in relations.items():
        connection.register(name, rows)
    return connection


@lru_cache(None)
def _duckdb(process: int, memory: str) -> Any:
    """The DuckDB of a process, with a limit of memory. A forked child has one of its own, and keeps that of its parent:
    closing it would wait for threads that the child does not have."""
    try:
        import duckdb
    except ImportError:
        raise NoDuckDB(REMEDY) from None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    settings = {**_SETTINGS, "memory_limit": memory, "threads": str(min(cores, _MOST_THREADS))}
    made = duckdb.connect(":memory:", config=settings)
    for macro in (*MACROS, *OWN):
        made.execute(f"CREATE MACRO {macro}")
    made.execute("SET lock_configuration = true")
    if hasattr(os, "register_at_fork"):
        # The end of a child closes it otherwise.
        os.register_at_fork(after_in_child=lambda: ctypes.pythonapi.Py_IncRef(ctypes.py_object(made)))
    return made


def _plain(error: Exception) -> FreshviewsError:
    """An error of DuckDB without its class, its text of the SELECT, and its advice."""
    import duckdb

    if isinstance(error, FreshviewsError):
        return error
    if isinstance(error, duckdb.OutOfMemoryException | MemoryError):
        return OutOfMemory("the SELECT needs more memory than it may take; read fewer rows")
    message = re.split(r"\n\s*\n?LINE \d+:|\n", str(error).strip())[0]
    message = re.sub(r"^[A-Z][A-Za-z ]* Error: ", "", message)
    message = re.sub(r"^Python exception occurred while executing the UDF: \w+: ", "", message)
    refused = (duckdb.BinderException, duckdb.CatalogException, duckdb.NotImplementedException, duckdb.ParserException)
    if isinstance(error, refused):
        return UnsupportedSql(f"the SELECT cannot be answered: {message}")
    return SqlError(f"the SELECT cannot be computed: {message}")
