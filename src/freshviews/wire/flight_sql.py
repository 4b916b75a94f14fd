"""Computes the answers to requests of Flight SQL; the module ``server`` receives the requests and sends the answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa

import freshviews
from freshviews.errors import FreshviewsError
from freshviews.sql.statements.units import has_rows, units_of
from freshviews.sql.text.shape import count_parameters, first_word, is_select
from freshviews.wire import catalog_rows
from freshviews.wire.arrow_data import rows_of, schema_bytes, sendable, stream_of
from freshviews.wire.held import Gone, Prepared, held_results, held_statements
from freshviews.wire.messages import BadMessage, made, packed, parsed, unpacked
from freshviews.wire.served import RefusedStatement, Rows, Served

LONGEST_SQL = 1 << 20
"""Most characters of a statement."""
LONGEST_QUESTION = 500
"""Most characters of SHOW, DESCRIBE and EXPLAIN: these have no limit of time."""
MOST_PARAMETER_BYTES = 64 << 20
_COMMAND = 2
_COUNT = pa.schema([pa.field("rows", pa.int64())])
"""The columns of the result of a statement that is no SELECT, where a client asks for one."""
_SHORT = 500
"""Most characters of a refused statement that is parsed for a better message."""
_ACTIONS = {"CreatePreparedStatement": "Prepare a statement.", "ClosePreparedStatement": "Forget a statement."}


class FlightSql:
    """The answers of one server. Methods raise FreshviewsError, BadMessage and Gone."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._results = held_results()
        self._statements = held_statements()

    def close(self) -> None:
        """Forget results and statements."""
        self._results.clear()
        self._statements.clear()

    def info(self, request: bytes) -> bytes:
        """GetFlightInfo: a SELECT is answered now, and its rows wait for their ticket."""
        descriptor = parsed("FlightDescriptor", request)
        name, command = self._command(descriptor)
        table = self._asked(name, command)
        ticket = packed(made("TicketStatementQuery", statement_handle=self._results.add(table)))
        endpoint = made("FlightEndpoint", ticket=made("Ticket", ticket=ticket))
        content: bytes = made(
            "FlightInfo", schema=schema_bytes(table.schema), flight_descriptor=descriptor, endpoint=[endpoint],
            total_records=table.num_rows, total_bytes=table.nbytes, ordered=True,
        ).SerializeToString()  # fmt: skip
        return content

    def schema(self, request: bytes) -> bytes:
        """GetSchema: the columns of a result."""
        name, command = self._command(parsed("FlightDescriptor", request))
        if name.endswith("Query") and not self._reads(name, command):
            schema = _COUNT
        else:
            schema = self._asked(name, command).schema
        content: bytes = made("SchemaResult", schema=schema_bytes(schema)).SerializeToString()
        return content

    def rows(self, request: bytes) -> Iterator[bytes]:
        """DoGet: the rows of a ticket, once; or of a command, as a ticket."""
        name, command = unpacked(parsed("Ticket", request).ticket)
        if name == "TicketStatementQuery":
            return stream_of(self._results.take(command.statement_handle))
        return stream_of(self._asked(name, command))

    def put(self, requests: Iterator[bytes]) -> Iterator[bytes]:
        """DoPut: execute a statement that changes rows, or bind parameters."""
        first = next(requests, None)
        if first is None:
            raise BadMessage("the DoPut stream is empty; its first message must name a command")
        name, command = self._command(parsed("FlightData", first).flight_descriptor)
        if name == "CommandStatementIngest":
            raise RefusedStatement(self._instead_of_ingest(command.table))
        rows = rows_of(_then(first, requests), MOST_PARAMETER_BYTES)
        if name == "CommandStatementUpdate":
            count = self._update(command.query, [()])
        elif name == "CommandPreparedStatementUpdate":
            prepared = self._statements.get(command.prepared_statement_handle)
            count = self._update(prepared.sql, _fitting(prepared, rows) or [()])
        elif name == "CommandPreparedStatementQuery":
            prepared = self._statements.get(command.prepared_statement_handle)
            prepared.bind(_fitting(prepared, rows))
            yield made("PutResult").SerializeToString()
            return
        else:
            raise BadMessage(f"DoPut does not accept {name}")
        result = made("DoPutUpdateResult", record_count=count).SerializeToString()
        yield made("PutResult", app_metadata=result).SerializeToString()

    def act(self, request: bytes) -> Iterator[bytes]:
        """DoAction: prepare a statement, or forget one."""
        action = parsed("Action", request)
        if action.type not in _ACTIONS:
            raise RefusedStatement(
                f"action {action.type[:100]!r} is not supported; the actions are {', '.join(_ACTIONS)}"
            )
        name, command = unpacked(action.body)
        if name != f"Action{action.type}Request":
            raise BadMessage(f"{action.type} does not accept a message {name}")
        if action.type == "ClosePreparedStatement":
            with suppress(Gone):
                self._statements.take(command.prepared_statement_handle)
            return
        result = packed(self._prepare(command))
        yield made("Result", body=result).SerializeToString()

    def actions(self) -> Iterator[bytes]:
        """ListActions."""
        for name, description in _ACTIONS.items():
            yield made("ActionType", type=name, description=description).SerializeToString()

    def _command(self, descriptor: Any) -> tuple[str, Any]:
        if descriptor.type != _COMMAND:
            raise BadMessage("the descriptor has no command; only commands of Flight SQL are answered")
        name, command = unpacked(descriptor.cmd)
        if len(getattr(command, "query", "")) > LONGEST_SQL:
            raise BadMessage(f"a statement of at most {LONGEST_SQL:,} characters is accepted")
        _refuse_transaction(command)
        return name, command

    def _reads(self, name: str, command: Any) -> bool:
        if name == "CommandPreparedStatementQuery":
            return has_rows(self._statements.get(command.prepared_statement_handle).sql)
        return has_rows(command.query)

    def _asked(self, name: str, command: Any) -> pa.Table:
        """The result of a command."""
        if name == "CommandStatementQuery":
            return self._result(command.query, [()])
        if name == "CommandPreparedStatementQuery":
            prepared = self._statements.get(command.prepared_statement_handle)
            if not prepared.bound and prepared.parameters:
                raise BadMessage(f"the statement has {prepared.parameters} parameters, but no values were passed")
            return self._result(prepared.sql, prepared.bound or [()])
        found = catalog_rows.answer(name, command, self._served, freshviews.__version__)
        if found is None:
            raise BadMessage(f"{name} does not return rows")
        return found

    def _result(self, sql: str, bound: list[tuple[object, ...]]) -> pa.Table:
        """The rows of a SELECT, or the number of rows that other statements change, in a row."""
        if not has_rows(sql):
            count = self._update(sql, bound)
            return pa.table({"rows": [None if count < 0 else count]}, schema=_COUNT)
        if len(bound) > 1:
            raise RefusedStatement("a SELECT takes one row of parameters; execute it once for each row")
        rows = self._selected(sql, bound[0])
        table = sendable(rows.table)
        return table.replace_schema_metadata({"freshviews.version": str(rows.version)})

    def _selected(self, sql: str, parameters: tuple[object, ...]) -> Rows:
        if len(sql) > LONGEST_QUESTION and not is_select(sql):
            raise BadMessage(f"{first_word(sql)} of at most {LONGEST_QUESTION:,} characters is accepted")
        return self._served.select(sql, parameters)

    def _update(self, sql: str, bound: list[tuple[object, ...]]) -> int:
        if not self._served.is_writable:
            message = f"the server is read only; only SELECT is accepted; {self._served.how_to_write}"
            if len(sql) <= _SHORT:  # Perhaps SELECT is misspelt.
                try:
                    units_of(sql)
                except FreshviewsError as error:
                    message = f"{message}; {error}"
            raise RefusedStatement(message)
        return self._served.update(sql, bound)

    def _instead_of_ingest(self, table: str) -> str:
        """Why rows are not ingested, and how they are inserted."""
        refused = f"ingesting rows into table {table[:100]} (adbc_ingest) is not supported"
        if not self._served.is_writable:
            return f"{refused}, and the server is read only; {self._served.how_to_write}"
        return (
            f"{refused}; execute INSERT INTO {table[:100]} VALUES (?, ...) by executemany, or call db.insert in the "
            "process that has the database"
        )

    def _prepare(self, request: Any) -> Any:
        _refuse_transaction(request)
        sql = request.query
        if len(sql) > LONGEST_SQL:
            raise BadMessage(f"a statement of at most {LONGEST_SQL:,} characters is accepted")
        one = Prepared(sql, count_parameters(sql))
        columns = b""
        if has_rows(sql):
            try:
                columns = schema_bytes(sendable(self._selected(sql, (None,) * one.parameters).table).schema)
            except FreshviewsError:
                if not one.parameters:
                    raise
                # NULL is no argument there; the columns are known once values are.
                columns = schema_bytes(pa.schema([]))
        parameters = pa.schema([pa.field(f"{place + 1}", pa.null()) for place in range(one.parameters)])
        return made(
            "ActionCreatePreparedStatementResult", prepared_statement_handle=self._statements.add(one),
            dataset_schema=columns, parameter_schema=schema_bytes(parameters) if one.parameters else b"",
        )  # fmt: skip


def _refuse_transaction(command: Any) -> None:
    if getattr(command, "transaction_id", b""):
        raise RefusedStatement("transactions are not supported; each statement takes effect at once")


def _then(first: bytes, others: Iterable[bytes]) -> Iterator[bytes]:
    yield first
    yield from others


def _fitting(prepared: Prepared, rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    for row in rows:
        if len(row) != prepared.parameters:
            raise BadMessage(f"the statement has {prepared.parameters} parameters, but {len(row)} values were passed")
    return rows
