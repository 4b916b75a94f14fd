"""Runs in a process of its own, and answers SELECTs there.

The parent sends SELECTs as pickles, and input rows as files. The child answers with JSON, and with rows in a file.
"""

from __future__ import annotations

import json
import os
import pickle
import select
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa

from freshviews.asking.apart.channel import Channel, Given, Relations, Told, file_of, tables_in
from freshviews.asking.parameters import Parameters, bound
from freshviews.asking.question import Question, question_of
from freshviews.asking.relations import Asked, Names, known, names_of
from freshviews.asking.running import reading, within
from freshviews.asking.translation import Translation, translated
from freshviews.errors import FreshviewsError, NoDuckDB, OutOfMemory, UnsupportedSql

TOO_MUCH = "the SELECT needs more than the {} MB of memory that a SELECT has here; read fewer rows, or shorter texts"
_OF_DUCKDB = 0.75
"""DuckDB's part of the memory, which it counts itself; the process holds Python and texts besides."""


def serve(end: socket.socket, memory: int) -> None:
    """Answer questions until the parent ends. ``memory``: most bytes of this process."""
    Thread(target=_end_with_parent, args=(end,), daemon=True).start()
    _limit(memory)
    process = _Child(Channel(end), memory)
    process.warm()
    while True:
        process.answer()


def _end_with_parent(end: socket.socket) -> None:
    watch = select.poll()
    watch.register(end, select.POLLHUP)
    watch.poll()
    os._exit(0)


def _limit(memory: int) -> None:
    """Bound the memory of this process, and let the system end it before others where there is none left."""
    with suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


class _Abandoned(Exception):
    """The parent has no relations or rows for the question."""


class _Child:
    """``_kept``: columns by their number. ``_relations``: by their names, as the parent gave them last."""

    def __init__(self, channel: Channel, memory: int) -> None:
        self._channel = channel
        self._memory = memory
        self._kept: dict[int, pa.ChunkedArray] = {}
        self._relations = Told()

    def warm(self) -> None:
        """Import what a SELECT needs, and say that questions can be answered."""
        with suppress(NoDuckDB):
            os.close(self._file(translated(question_of("SELECT 1 AS one"), Asked(), ()), {}, (), None))
        self._say("ready")

    def answer(self) -> None:
        """Answer the next question."""
        asked, parameters, size = pickle.loads(self._channel.receive()[0])
        try:
            self._say("rows", file=self._answered(asked, parameters, size))
        except _Abandoned:
            return
        except MemoryError:
            self._say("error", OutOfMemory.__name__, TOO_MUCH.format(self._memory >> 20), {})
        except FreshviewsError as error:
            places = {name: value for name, value in vars(error).items() if isinstance(value, int)}
            self._say("error", type(error).__name__, str(error), places)
        except Exception as error:
            self._say("error", "", type(error).__name__, {})

    def _answered(self, asked: str | Question, parameters: Parameters, size: int | None) -> int:
        """The file with the rows of a SELECT."""
        question = question_of(asked) if isinstance(asked, str) else asked
        values, kinds = bound(question, parameters)
        names = names_of(question)
        found: Relations | Given = self._relations[names] if names in self._relations else self._ask(names, None)
        while not isinstance(found, Given):
            read = known(question, found)
            _refuse_python(read)
            translation = translated(question, read, kinds)
            found = self._ask(names, translation.reads)
        tables = {
            name: pa.table([self._kept[number] for number in found.numbers[name]], names=list(columns))
            for name, _, columns in translation.reads
        }
        for number in found.forgotten:
            del self._kept[number]
        return self._file(translation, tables, values, size)

    def _file(
        self, translation: Translation, tables: Mapping[str, pa.Table], values: Sequence[Any], size: int | None
    ) -> int:
        memory = f"{int(self._memory * _OF_DUCKDB) >> 20}MiB"

        def write(file: Any) -> None:
            with reading(translation, tables, values, memory) as rows:
                named = zip(translation.names, rows.schema, strict=True)
                schema = pa.schema([field.with_name(name) for name, field in named])
                with pa.ipc.new_stream(file, schema) as stream:
                    for batch in within(rows, size):
                        stream.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))

        return file_of(write)

    def _ask(self, names: Names, reads: Any) -> Relations | Given:
        """The rows that are read, whose columns are kept from now on; or the relations with these names, if nothing is
        read yet or they are others by now."""
        self._say("read", names, reads)
        content, file = self._channel.receive()
        answer: Relations | Given | None = pickle.loads(content)
        if answer is None:
            raise _Abandoned
        if not isinstance(answer, Given):
            self._relations.tell(names, answer)
        elif file is not None:
            for numbers, table in zip(answer.sent, tables_in(file, len(answer.sent)), strict=True):
                self._kept.update(zip(numbers, table.columns, strict=True))
        return answer

    def _say(self, *message: Any, file: int | None = None) -> None:
        self._channel.send(json.dumps(message).encode(), file)


def _refuse_python(asked: Asked) -> None:
    """Raise UnsupportedSql for a Python function: this process may lack it."""
    for one in asked.functions:
        if one.operation:
            raise UnsupportedSql(
                f"a SELECT of a client cannot call the Python function {one.name}; read a view that calls the function"
            )
