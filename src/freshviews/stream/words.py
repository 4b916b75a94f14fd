"""Maps each word of an op column, such as ``insert`` or ``-u``, to an action on the row.

=================================================================  =========================================
words, in any case                                                 action
=================================================================  =========================================
insert, i, +, +i, +u, c, create, r, read, update_postimage         INSERT: one more of this row
delete, d, -, -d, -u, update_preimage                              DELETE: one less of this row
update, u, upsert                                                  REPLACE: it replaces the row of its key
remove                                                             REMOVE: delete the row of this key, if any
=================================================================  =========================================
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from freshviews.stream.problems import Problems

Actions = npt.NDArray[np.int8]

INSERT, DELETE, REPLACE, REMOVE = 1, -1, 2, -2
_BAD = 0

_INSERTS = ("insert", "i", "+", "+i", "+u", "c", "create", "r", "read", "update_postimage")
_DELETES = ("delete", "d", "-", "-d", "-u", "update_preimage")
_UPDATES = ("update", "u", "upsert")
REMOVES = "remove"
"""The word that deletes a row by its key alone, and has no effect if no row has the key."""

ROW_WORDS: Mapping[str, int] = {**dict.fromkeys(_INSERTS, INSERT), **dict.fromkeys(_DELETES, DELETE)}
"""Words for whole rows."""

ALL_WORDS: Mapping[str, int] = {**ROW_WORDS, **dict.fromkeys(_UPDATES, REPLACE), REMOVES: REMOVE}
"""The same, and words for rows that replace or delete the row of their key."""

KEY_WORDS: Mapping[str, int] = {word: REMOVE if action < 0 else REPLACE for word, action in ALL_WORDS.items()}
"""The same words if the key alone identifies the row."""

DELTA_WORDS: Mapping[str, int] = {
    "insert": INSERT,
    "delete": DELETE,
    "update_preimage": DELETE,
    "update_postimage": INSERT,
}
"""Words of a Delta change feed."""


def actions_of(name: str, column: pa.Array, words: Mapping[str, int], problems: Problems) -> Actions:
    """The action of each row; 0 if the row is bad. Only distinct words are examined.

    ``column``: one-byte or longer text, plain or dictionary-encoded. Raises BadChange for any other type.

    The words come from Flink's row kinds (+I -U +U -D), Delta's change feed, Debezium and English. In upserts, INSERT
    counts as REPLACE and DELETE as REMOVE. A DELETE with values only in the columns of a primary key also deletes the
    row with this key. If no row has the key, the DELETE is a bad row.
    """
    encoded = column if pa.types.is_dictionary(column.type) else _encoded(name, column, problems)
    distinct: list[Any] = encoded.dictionary.to_pylist()
    known = [words.get(str(word).strip().lower(), _BAD) for word in distinct]
    actions = np.array([*known, _BAD], np.int8)
    indices = encoded.indices
    if indices.null_count:
        indices = indices.cast(pa.int64()).fill_null(len(distinct))
    places: npt.NDArray[np.integer[Any]] = indices.to_numpy()
    found: Actions = actions[places]
    if _BAD in known or indices is not encoded.indices:
        for row in np.flatnonzero(found == _BAD).tolist():
            value = column[row].as_py()
            problems.add(row, name, value, _reason(value, words))
    return found


def _encoded(name: str, column: pa.Array, problems: Problems) -> pa.Array:
    kind = column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind)):
        problems.refuse(name, f"an op column must hold words such as insert and delete, not {kind}")
    return column.cast(pa.string()).dictionary_encode() if pa.types.is_null(kind) else column.dictionary_encode()


def _reason(value: object, words: Mapping[str, int]) -> str:
    accepted = f"the accepted words are {', '.join(words)}, in upper or lower case"
    if value is None:
        return f"NULL is no operation; {accepted}"
    word = str(value).strip().lower()
    if word in (*_UPDATES, REMOVES):
        does = "deletes" if word == REMOVES else "replaces"
        return f"it {does} the row of its key, so the table needs a PRIMARY KEY; without one, {accepted}"
    return accepted
