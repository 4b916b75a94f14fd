"""Runs DuckDB's text over Arrow tables, in a DuckDB that reaches nothing else.

The process has one DuckDB, in memory, without files, extensions, settings and other databases. Each SELECT has a
connection of its own, in which only its relations exist.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from threading import Timer
from typing import Any

import pyarrow as pa

from freshviews.asking.meaning import MACROS
from freshviews.asking.translation import Translation
from freshviews.errors import FreshviewsError, NoDuckDB, OutOfMemory, SqlError, UnsupportedSql

REMEDY = "db.sql needs DuckDB; install it with: pip install 'freshviews[sql]'"

_MOST_THREADS = 4
_SETTINGS = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "temp_directory": "",
    "memory_limit": "25%",
}
_SECONDS = "the SELECT took more than {:g} s and was stopped"


def run(
    translation: Translation,
    relations: Mapping[str, pa.Table],
    values: Sequence[Any] = (),
    seconds: float | None = None,
) -> pa.Table:
    """The rows of a SELECT. ``relations``: by the names in ``translation.reads``. ``seconds``: the most it may take.

    Ctrl-C stops it. Raises SqlError for a value that cannot be computed, FreshviewsError if it takes too long.
    """
    connection = _duckdb(os.getpid()).cursor()
    timer = None
    late: list[bool] = []
    import duckdb

    def stop() -> None:
        late.append(True)
        connection.interrupt()

    try:
        for name, rows in relations.items():
            connection.register(name, rows)
        if seconds is not None:
            timer = Timer(seconds, stop)
            timer.daemon = True
            timer.start()
        found = connection.sql(translation.sql, params=list(values)).to_arrow_table()
    except duckdb.InterruptException:
        if late:
            raise FreshviewsError(_SECONDS.format(seconds)) from None
        raise KeyboardInterrupt from None
    except duckdb.OutOfMemoryException:
        raise OutOfMemory("the SELECT needs more memory than it may take; read fewer rows") from None
    except (duckdb.Error, RuntimeError, UnicodeError) as error:
        raise _plain(duckdb, error) from None
    finally:
        if timer is not None:
            timer.cancel()
        connection.close()
    return found.rename_columns(list(translation.names))


@lru_cache(1)
def _duckdb(process: int) -> Any:
    """The DuckDB of a process: a forked child has one of its own."""
    try:
        import duckdb
    except ImportError:
        raise NoDuckDB(REMEDY) from None
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    made = duckdb.connect(":memory:", config={**_SETTINGS, "threads": min(cores, _MOST_THREADS)})
    for macro in MACROS:
        made.execute(macro)
    made.execute("SET lock_configuration = true")
    return made


def _plain(duckdb: Any, error: Exception) -> FreshviewsError:
    """An error of DuckDB without its class, its text of the SELECT, and its advice."""
    message = re.split(r"\n\s*\n?LINE \d+:|\n", str(error).strip())[0]
    message = re.sub(r"^[A-Z][A-Za-z ]* Error: ", "", message)
    refused = (duckdb.BinderException, duckdb.CatalogException, duckdb.NotImplementedException, duckdb.ParserException)
    if isinstance(error, refused):
        return UnsupportedSql(f"the SELECT cannot be answered: {message}")
    return SqlError(f"the SELECT cannot be computed: {message}")
