"""Computes aggregates such as STRING_AGG: joins the values of all rows of a group to one text.

When rows change, only the texts of the groups of these rows are made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from json.encoder import encode_basestring
from typing import TypeVar

import numpy as np

from freshviews.engine.codes.code_batch import Codes
from freshviews.engine.views.failure import Failed, Failure
from freshviews.engine.views.output import consolidate
from freshviews.expr.strings import check_length
from freshviews.kernel.machine.interruption import FEW, INTERRUPTION
from freshviews.query.block import GatheredColumn, Gathering
from freshviews.types import NULL
from freshviews.types.dictionary import Dictionary
from freshviews.types.json_text import in_json
from freshviews.types.python_functions import Value

_GROUP_BYTES = 200
"""Bytes of a group in a dict of arrays, without its rows."""

_Group = TypeVar("_Group")

_Made = tuple[Value, ...]
"""The texts of a group, or its value, in the form of literals."""


class Texts:
    """The texts of the groups of a block, and the rows from which they are made.

    Rows of the block have the shape (n, groups + columns + 1), rows of texts (n, groups + texts + 1), multiplicities
    last.

    ``Texts`` has a copy of the block's rows by group. When the block changes, the old and the new text of each changed
    group is rendered. So a version costs as much as all rows of the groups that it changes. The copy is made when a
    change is first read, and again after each ``forget``.

    Codes of texts are not stored here. The old text of a group gets the same code as before, because a view that stores
    the code keeps the string in the dictionary.
    """

    kept = "rows of texts"
    """The things that ``rows`` counts, in words."""

    def __init__(self, gathering: Gathering, dictionary: Dictionary) -> None:
        self._gathering = gathering
        self._dictionary = dictionary
        self._rows: dict[bytes, Codes] | None = None
        """The rows of each group, by the words of its key; None until they are needed."""
        self._count = 0
        self._texts: dict[bytes, _Made] = {}
        """The texts of groups that have changed, by the words of the key."""

    @property
    def rows(self) -> int:
        """The number of rows of the copy."""
        return self._count

    @property
    def about_bytes(self) -> int:
        """Approximate bytes of the copy and of remembered texts, without their strings, which the dictionary has."""
        g = self._gathering
        kept = len(self._rows or ()) + g.texts * len(self._texts)
        return 8 * (g.groups + len(g.columns) + 1) * self._count + _GROUP_BYTES * kept

    def of(self, rows: Codes) -> Codes:
        """The texts of all groups. ``rows``: all rows of the block."""
        return self._rendered(by_group(consolidate(rows), self._gathering.groups), {})

    def change(self, take: Callable[[], Codes], every: Callable[[], Codes]) -> Codes:
        """The change of the texts, consolidated. ``take`` returns the change of the rows since the last call, and
        ``every`` all rows after it. Their errors are passed on."""
        try:
            change = consolidate(take())
            if not len(change):
                return np.empty((0, self._gathering.groups + self._gathering.texts + 1), np.int64)
            gone, come = self._before_and_after(change, every)
        except BaseException:
            # The change may have been taken without reaching the copy.
            self.forget()
            raise
        gone[:, -1] = -1
        return consolidate(np.concatenate([gone, come]))

    def _before_and_after(self, change: Codes, every: Callable[[], Codes]) -> tuple[Codes, Codes]:
        """The texts of the groups of a change, before it and after it. ``every`` returns all rows after it."""
        before = self._begin(every(), change) if self._rows is None else self._follow(change)
        gone = self._rendered(before, self._texts)
        self._forget_texts(change)
        return gone, self._rendered(self._of_groups(change))

    def pass_over(self, take: Callable[[], Codes], forget: Callable[[], None]) -> None:
        """Follow a change of the rows if nothing reads the change of the texts. ``take`` returns the change of the
        rows, for the copy if there is one; ``forget`` drops it."""
        if self._rows is None:
            forget()
            return
        try:
            change = consolidate(take())
            if len(change):
                self._follow(change)
                self._forget_texts(change)
        except Failed:
            self.forget()
            forget()
        except BaseException:
            self.forget()
            raise

    def forget(self) -> None:
        """Forget the copy, because the rows may have changed."""
        self._rows, self._count, self._texts = None, 0, {}

    # The copy

    def _begin(self, rows: Codes, change: Codes) -> Codes:
        """Copy all rows; returns the rows of the changed groups before the change."""
        self._rows = {}
        self._count = 0
        self._put(by_group(consolidate(rows), self._gathering.groups))
        return self._with(self._of_groups(change), change, -1)

    def _follow(self, change: Codes) -> Codes:
        """Add a change to the copy; returns the rows of the changed groups before it."""
        before = self._of_groups(change)
        after = self._with(before, change, 1)
        assert self._rows is not None
        for group in _keys(change, self._gathering.groups):
            self._count -= len(self._rows.pop(group, ()))
        self._put(after)
        return before

    def _forget_texts(self, change: Codes) -> None:
        """Forget the texts of the groups of a change."""
        for key in _keys(change, self._gathering.groups):
            self._texts.pop(key, None)

    def _put(self, rows: Codes) -> None:
        """Add new groups; the rows of each must be consecutive."""
        assert self._rows is not None
        groups = self._gathering.groups
        self._count += len(rows)
        for begin, end in between_groups(pairwise(bounds_of(rows, groups))):
            self._rows[rows[begin, :groups].tobytes()] = rows[begin:end].copy()

    def _of_groups(self, change: Codes) -> Codes:
        """The copied rows of the groups of a change, group by group."""
        assert self._rows is not None
        groups = self._gathering.groups
        found = [self._rows[key] for key in _keys(change, groups) if key in self._rows]
        return np.concatenate([change[:0], *found])

    def _with(self, rows: Codes, change: Codes, sign: int) -> Codes:
        """Rows with a change added, or subtracted, group by group."""
        signed = change.copy()
        signed[:, -1] *= sign
        return by_group(consolidate(np.concatenate([rows, signed])), self._gathering.groups)

    # Rendering

    def _rendered(self, rows: Codes, known: dict[bytes, _Made] | None = None) -> Codes:
        """The texts of groups, from all of their rows, consecutive by group. Multiplicities below zero are ignored.

        ``known``: texts of groups that need not be rendered; without it the texts are remembered.
        """
        gathering = self._gathering
        groups = gathering.groups
        rows = rows[rows[:, -1] > 0]
        bounds = bounds_of(rows, groups)
        made = np.ones((len(bounds) - 1, groups + gathering.texts + 1), np.int64)
        made[:, :groups] = rows[bounds[:-1], :groups]
        keys = [key.tobytes() for key in made[:, :groups]]
        missing = np.array([known is None or key not in known for key in keys], np.bool_)
        found = iter(self._texts_of(rows[np.repeat(missing, np.diff(bounds))]))
        texts = [next(found) if lacks else known[key] for key, lacks in zip(keys, missing, strict=True)]  # type: ignore[index]
        codes = [self._codes_of(one) for one in between_groups(texts)]
        made[:, groups:-1] = np.array(codes, np.int64).reshape(-1, gathering.texts)
        if known is None:
            self._texts |= dict(zip(keys, map(self._kept, texts, codes), strict=True))
        if gathering.whole and not len(made):
            return np.array([[NULL] * gathering.texts + [1]], np.int64)
        return made

    def _codes_of(self, made: _Made) -> list[int]:
        """The codes of the texts of a group."""
        return [self._dictionary.encode(one) if isinstance(one, str) else NULL for one in made]

    def _kept(self, made: _Made, codes: list[int]) -> _Made:
        """The same texts. The dictionary's own string objects take no further memory."""
        decode = self._dictionary.decode
        return tuple(decode(code) if isinstance(one, str) else one for one, code in zip(made, codes, strict=True))

    def _texts_of(self, rows: Codes) -> list[_Made]:
        """The texts of each group of these rows. Raises KeyboardInterrupt as ``between_groups``."""
        bounds = bounds_of(rows, self._gathering.groups)
        found: list[_Made] = []
        for first, last in between_groups(_pieces(bounds)):
            part = bounds[first : last + 1]
            found += self._texts_in(rows[part[0] : part[-1]], part - part[0])
        return found

    def _texts_in(self, rows: Codes, bounds: Codes) -> list[_Made]:
        """The texts of each group of a piece of the rows."""
        gathering = self._gathering
        sizes = np.diff(bounds)
        columns = zip(gathering.columns, rows[:, gathering.groups :].T, strict=False)
        ranks = [_ranks(column, codes, self._dictionary) for column, codes in columns]
        rows = rows[np.lexsort([*ranks[::-1], np.repeat(np.arange(len(sizes)), sizes)])]
        return self._made_of(rows, bounds)

    def _made_of(self, rows: Codes, bounds: Codes) -> list[_Made]:
        """The texts of each group of rows in the order of the columns."""
        gathering = self._gathering
        if gathering.listed:
            return self._relations(rows, bounds)
        try:
            found = self._json(rows, bounds) if gathering.separator is None else self._joined(rows, bounds)
        except ValueError as error:
            raise Failed(Failure("evaluation", str(error))) from None
        return [(text,) for text in found]

    def _joined(self, rows: Codes, bounds: Codes) -> list[str | None]:
        """The values of each group, joined. Raises ValueError for a text that is too long."""
        gathering = self._gathering
        assert gathering.separator is not None
        decode = self._dictionary.decode
        values = [None if code == NULL else decode(code) for code in rows[:, -2].tolist()]
        times = rows[:, -1].tolist()
        found: list[str | None] = []
        for begin, end in between_groups(pairwise(bounds.tolist())):
            parts: list[str] = []
            length = 0
            for value, number in zip(values[begin:end], times[begin:end], strict=True):
                if value is not None:
                    copies = 1 if gathering.distinct else number
                    length += copies * (len(value) + len(gathering.separator))
                    check_length("string_agg", length - len(gathering.separator))
                    parts += [value] * copies
            found.append(gathering.separator.join(parts) if parts else None)
        return found

    def _json(self, rows: Codes, bounds: Codes) -> list[str | None]:
        """A JSON array for each group, with an object for each of its rows."""
        gathering = self._gathering
        values = self._values(rows)
        members: list[list[str]] = []
        for name, width in gathering.relations:
            own, values = values[:width], values[width:]
            head = f"{encode_basestring(name)}: ["
            members.append([f"{head}{', '.join(one)}]" for one in zip(*own, strict=True)] or [f"{head}]"] * len(rows))
        members.append([f'"times": {times}' for times in rows[:, -1].tolist()])
        return list(_arrays([f"{{{', '.join(parts)}}}" for parts in zip(*members, strict=True)], bounds))

    def _relations(self, rows: Codes, bounds: Codes) -> list[_Made]:
        """JSON arrays for each group, with an array for each row of a relation."""
        values, relations = self._values(rows), rows[:, self._gathering.groups]
        texts = []
        for number, places in self._gathering.listed:
            chosen = np.flatnonzero(relations == number)
            parts = zip(*([values[place][i] for i in chosen.tolist()] for place in places), strict=True)
            texts.append(_arrays([f"[{', '.join(part)}]" for part in parts], np.searchsorted(chosen, bounds)))
        return list(zip(*texts, strict=True))

    def _values(self, rows: Codes) -> list[list[str]]:
        """The values of the rows as JSON, column by column."""
        columns = zip(self._gathering.columns, rows[:, self._gathering.groups :].T, strict=False)
        return [in_json(column.type, codes, self._dictionary) for column, codes in columns]


def _arrays(elements: list[str], bounds: Codes) -> Iterator[str]:
    """A JSON array for each group. ``elements``: the JSON of each row."""
    return (f"[{', '.join(elements[begin:end])}]" for begin, end in between_groups(pairwise(bounds.tolist())))


def between_groups(groups: Iterable[_Group]) -> Iterator[_Group]:
    """The groups, one by one. Raises KeyboardInterrupt between two of them if Ctrl-C came and the caller may end."""
    for one in groups:
        if INTERRUPTION.asked:
            INTERRUPTION.raise_if_allowed()
        yield one


def _pieces(bounds: Codes) -> Iterator[tuple[int, int]]:
    """The first group of each piece, and the one after its last. A piece has one group, or at most ``FEW`` rows."""
    at, groups = 0, len(bounds) - 1
    while at < groups:
        end = max(at + 1, int(np.searchsorted(bounds, bounds[at] + FEW, "right")) - 1)
        yield at, end
        at = end


def by_group(rows: Codes, groups: int) -> Codes:
    """The rows, those of each group together."""
    if groups == 0 or len(rows) < 2:
        return rows
    order = np.lexsort([rows[:, i] for i in range(groups)])
    found: Codes = rows[order]
    return found


def bounds_of(rows: Codes, groups: int) -> Codes:
    """The start of each group, and the end of the last one. The rows of a group must be consecutive."""
    differs = (rows[1:, :groups] != rows[:-1, :groups]).any(axis=1)
    begins = [0, *(np.flatnonzero(differs) + 1).tolist()] if len(rows) else []
    return np.array([*begins, len(rows)], np.int64)


def _keys(rows: Codes, groups: int) -> list[bytes]:
    """The words of the key of each group, once."""
    return list(dict.fromkeys(key.tobytes() for key in np.ascontiguousarray(rows[:, :groups])))


def _ranks(column: GatheredColumn, codes: Codes, dictionary: Dictionary) -> Codes:
    """A number for each value, in the order of the column."""
    distinct, places = np.unique(codes, return_inverse=True)
    if column.type.is_text:
        values = ["" if code == NULL else dictionary.decode(code) for code in distinct.tolist()]
        ranked = sorted(range(len(values)), key=values.__getitem__)
        places = np.argsort(np.array(ranked, np.int64))[places]
    elif column.type.is_float:
        places = np.argsort(np.argsort(distinct.view(np.float64), kind="stable"))[places]
    ranks: Codes = -places if column.descending else places.copy()
    ranks[codes == NULL] = len(codes) if column.nulls_last else -len(codes)
    return ranks
