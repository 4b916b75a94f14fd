"""Defines the messages of Arrow Flight and Flight SQL, as classes of the package protobuf."""

from __future__ import annotations

from functools import cache
from typing import Any

from freshviews.errors import ArgumentError

_TYPES = {"int64": 3, "int32": 5, "bool": 8, "string": 9, "bytes": 12, "uint32": 13, "uint64": 4}
_MESSAGE, _OPTIONAL, _REPEATED = 11, 1, 3

FLIGHT = {
    "Any": "type_url:string=1 value:bytes=2",
    "HandshakeRequest": "protocol_version:uint64=1 payload:bytes=2",
    "HandshakeResponse": "protocol_version:uint64=1 payload:bytes=2",
    "Action": "type:string=1 body:bytes=2",
    "ActionType": "type:string=1 description:string=2",
    "Result": "body:bytes=1",
    "SchemaResult": "schema:bytes=1",
    "FlightDescriptor": "type:int32=1 cmd:bytes=2 path:string*=3",
    "Ticket": "ticket:bytes=1",
    "FlightEndpoint": "ticket:Ticket=1",
    "FlightInfo": "schema:bytes=1 flight_descriptor:FlightDescriptor=2 endpoint:FlightEndpoint*=3 "
    "total_records:int64=4 total_bytes:int64=5 ordered:bool=6",
    "FlightData": "flight_descriptor:FlightDescriptor=1 data_header:bytes=2 app_metadata:bytes=3 data_body:bytes=1000",
    "PutResult": "app_metadata:bytes=1",
}
"""Messages of Flight, and Any."""

_FILTERS = "catalog:string?=1 db_schema_filter_pattern:string?=2"
_TABLE = "catalog:string?=1 db_schema:string?=2 table:string=3"

SQL = {
    "CommandGetSqlInfo": "info:uint32*=1",
    "CommandGetCatalogs": "",
    "CommandGetDbSchemas": _FILTERS,
    "CommandGetTables": f"{_FILTERS} table_name_filter_pattern:string?=3 table_types:string*=4 include_schema:bool=5",
    "CommandGetTableTypes": "",
    "CommandGetPrimaryKeys": _TABLE,
    "CommandGetExportedKeys": _TABLE,
    "CommandGetImportedKeys": _TABLE,
    "CommandGetCrossReference": "pk_table:string=3 fk_table:string=6",
    "CommandStatementQuery": "query:string=1 transaction_id:bytes?=2",
    "CommandStatementUpdate": "query:string=1 transaction_id:bytes?=2",
    "CommandStatementIngest": "table:string=2 transaction_id:bytes?=6",
    "CommandPreparedStatementQuery": "prepared_statement_handle:bytes=1",
    "CommandPreparedStatementUpdate": "prepared_statement_handle:bytes=1",
    "TicketStatementQuery": "statement_handle:bytes=1",
    "DoPutUpdateResult": "record_count:int64=1",
    "ActionCreatePreparedStatementRequest": "query:string=1 transaction_id:bytes?=2",
    "ActionCreatePreparedStatementResult": "prepared_statement_handle:bytes=1 dataset_schema:bytes=2 "
    "parameter_schema:bytes=3",
    "ActionClosePreparedStatementRequest": "prepared_statement_handle:bytes=1",
}
"""Messages of Flight SQL, each sent within an Any."""

_PACKAGE = "arrow.flight.protocol.sql"
_PREFIX = f"type.googleapis.com/{_PACKAGE}."


class BadMessage(Exception):
    """Bytes that are not the message expected; the text says which one is."""


@cache
def classes() -> dict[str, Any]:
    """All classes by name. Raises ArgumentError if the package protobuf is missing.

    A field is written ``name:type=number``, with ``*`` after the type if it repeats, and ``?`` if a message says
    whether it has the field. Enumerations are int32, which has the same bytes. Fields that nothing here reads are left
    out: parsing skips them.
    """
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError:
        raise ArgumentError("Flight SQL needs the package protobuf; pip install 'freshviews[flight]'") from None
    file = descriptor_pb2.FileDescriptorProto(name="freshviews/flight.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in (FLIGHT | SQL).items():
        made = file.message_type.add(name=name)
        for text in fields.split():
            field, _, rest = text.partition(":")
            kind, _, number = rest.partition("=")
            plain = kind.rstrip("*?")
            one = made.field.add(name=field, number=int(number))
            one.label = _REPEATED if kind.endswith("*") else _OPTIONAL
            one.type = _TYPES.get(plain, _MESSAGE)
            if plain not in _TYPES:
                one.type_name = f".{_PACKAGE}.{plain}"
            if kind.endswith("?"):
                one.proto3_optional, one.oneof_index = True, len(made.oneof_decl)
                made.oneof_decl.add(name=f"_{field}")
    pool = descriptor_pool.DescriptorPool()  # Of our own: another package may define the same messages in the default.
    pool.Add(file)
    names = (*FLIGHT, *SQL)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}")) for name in names}


def made(name: str, **fields: object) -> Any:
    """A message with some fields."""
    return classes()[name](**fields)


def parsed(name: str, content: bytes) -> Any:
    """A message from its bytes. Raises BadMessage."""
    from google.protobuf.message import DecodeError

    try:
        return classes()[name].FromString(content)
    except (DecodeError, RecursionError):
        raise BadMessage(f"the request is not a valid {name}") from None


def packed(message: Any) -> bytes:
    """A message of Flight SQL within an Any, as bytes."""
    name: str = message.DESCRIPTOR.name
    content: bytes = made("Any", type_url=_PREFIX + name, value=message.SerializeToString()).SerializeToString()
    return content


def unpacked(content: bytes) -> tuple[str, Any]:
    """The name of a message of Flight SQL within an Any, and the message. Raises BadMessage."""
    found = parsed("Any", content)
    name = found.type_url.removeprefix(_PREFIX)
    if name not in SQL or name == found.type_url:
        raise BadMessage(f"command {found.type_url[:100]!r} of Flight SQL is not supported")
    return name, parsed(name, found.value)
