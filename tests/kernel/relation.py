"""A table used as by triggers, with a dict of its expected rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from freshviews.kernel.btree.folds import FUNCTION, KIND
from freshviews.kernel.hash.index import (
    BLOCK_CAPACITY,
    INLINE,
    SCANNED,
    digest_at,
    digest_of,
    is_scanned,
    position_of,
    slice_count,
    slice_of,
    slice_rows,
)
from freshviews.kernel.hash.table import (
    FAILED,
    JOURNAL,
    JOURNALED,
    JOURNALING,
    KEY,
    LIVE,
    PAYLOAD,
    USED,
    add_index,
    clear_journal,
    find,
    find_from,
    free_table,
    is_zero,
    new_table,
    row_at,
    row_number,
    settle,
    touch,
    upsert,
)
from freshviews.kernel.memory.mem import add_wrapping, allocate, load, load32, release, store
from freshviews.kernel.ordered.folds import MODE, MODE_LAST, ordered_fold_at
from freshviews.kernel.ordered.groups import leave_small_outside
from freshviews.kernel.ordered.index import KINDS, new_ordered
from freshviews.kernel.ordered.index_updates import ordered_insert, ordered_remove, ordered_update
from freshviews.kernel.ordered.places import placed_insert, placed_remove, placed_update
from freshviews.kernel.ordered.sums import describe_sums, header_words, words_of_sum
from tests.kernel.words import words_at

Key = tuple[int, ...]
Payload = tuple[int, ...]


class Relation:
    """A table ``t`` with its indexes and ordered index, and ``model``: payload by key, none of them zero.

    With ``digests``, indexes on all positions except one store digests. A fold is a kind and the address of its
    function. ``sums`` are the sizes of the first components, which are summed. With ``small``, groups of few rows are
    outside the tree of the ordered index; the first index is then by the prefix of its order. ``placed``: rows have
    places.
    """

    def __init__(
        self,
        key: int,
        payload: int,
        indexes: tuple[tuple[int, ...], ...] = (),
        ordered: int | tuple[int, ...] | None = None,
        journal: bool = False,
        digests: bool = False,
        folds: tuple[tuple[int, int], ...] = (),
        sums: tuple[int, ...] = (),
        small: bool = False,
        placed: bool = False,
    ) -> None:
        self.folds = folds
        self.sums = sums
        self.placed = placed
        words_in_row = int(ordered is not None) + len(folds) + sum(map(words_of_sum, sums)) + int(placed)
        self.t = new_table(key, payload, len(indexes), words_in_row, int(journal))
        self.positions = indexes
        self.indexes = []
        self.digests = digests
        self.digested: list[int] = []
        for positions in indexes:
            words = allocate(max(len(positions), 1))
            for i, position in enumerate(positions):
                store(words, i, position)
            left_over = set(range(key)).difference(positions)
            self.digested.append(left_over.pop() if digests and len(left_over) == 1 else -1)
            self.indexes.append(add_index(self.t, words, len(positions), 1 + self.digested[-1]))
            release(words)
        kinds = ordered if isinstance(ordered, tuple) else () if ordered is None else (ordered,)
        self.ordered = new_ordered(self.t, len(kinds), len(folds) + int(placed), header_words(sums)) if kinds else 0
        if small:
            assert indexes[0] == tuple(range(key - len(kinds)))
            leave_small_outside(self.ordered, self.indexes[0])
        for i, kind in enumerate(kinds):
            store(self.ordered, KINDS + i, kind)
        for f, (fold, function) in enumerate(folds):
            store(ordered_fold_at(self.ordered, self.t, f), KIND, fold)
            store(ordered_fold_at(self.ordered, self.t, f), FUNCTION, function)
        if sums:
            describe_sums(self.ordered, self.t, [key + sum(sums[:f]) for f in range(len(sums))], sums)
        store(self.t, JOURNALING, int(journal))
        self.model: dict[Key, Payload] = {}
        self.before: dict[Key, Payload] = {}

    def add(self, key: Key, delta: Payload, changed: Callable[[int], None] | None = None) -> None:
        """Add to a payload as a trigger does, in the table and in the model. ``changed`` is called with the row before
        it may be removed."""
        t = self.t
        zero = (0,) * len(delta)
        old = self.model.get(key, zero)
        self.before.setdefault(key, old)
        new = tuple(add_wrapping(a, b) for a, b in zip(old, delta, strict=True))
        self.model[key] = new
        if new == zero:
            del self.model[key]

        row = upsert(t, key)
        assert is_zero(t, row) == (old == zero)
        absent = is_zero(t, row)
        touch(t, row)
        for i, word in enumerate(new):
            store(row + 8 * load(t, KEY), i, word)
        insert, remove = (placed_insert, placed_remove) if self.placed else (ordered_insert, ordered_remove)
        if self.ordered and absent and new != zero:
            insert(self.ordered, t, row_number(t, row))
        if new == zero and self.ordered and not absent:
            remove(self.ordered, t, row_number(t, row))
        counted = any(kind in (MODE, MODE_LAST) for kind, _ in self.folds)
        if (self.sums or counted) and new != zero and not absent:
            ordered_update(self.ordered, t, row_number(t, row))
        if self.placed and new != zero and not absent:
            placed_update(self.ordered, t, row_number(t, row))
        if changed is not None:
            changed(row)
        if new == zero:
            settle(t, row)

    def payload(self, row: int) -> Payload:
        return words_at(row + 8 * load(self.t, KEY), load(self.t, PAYLOAD))

    def get(self, key: Key) -> Payload | None:
        """The payload of a key that is present."""
        row = find(self.t, key)
        return None if row == 0 or is_zero(self.t, row) else self.payload(row)

    def scan(self) -> dict[Key, Payload]:
        """All present rows, by a scan."""
        t = self.t
        rows = [row_at(t, number) for number in range(load(t, USED))]
        found = [(words_at(row, load(t, KEY)), self.payload(row)) for row in rows if not is_zero(t, row)]
        assert len(dict(found)) == len(found)
        return dict(found)

    def slice(self, index: int, key: Key) -> list[Key]:
        """The keys of the rows in a slice, present or kept for the journal, sorted."""
        group = slice_of(self.indexes[index], key)
        rows = slice_rows(group)
        return sorted(
            words_at(row_at(self.t, load32(rows, i)), load(self.t, KEY)) for i in range(slice_count(group))
        )

    def journal(self) -> dict[Key, Payload]:
        """The payload before the batch, by key, of each row that the batch touched."""
        t = self.t
        entry = load(t, PAYLOAD) + 1
        found = []
        for i in range(load(t, JOURNALED)):
            at = load(t, JOURNAL) + 8 * i * entry
            key = words_at(row_at(t, load(at, 0)), load(t, KEY))
            found.append((key, words_at(at + 8, entry - 1)))
        assert len(dict(found)) == len(found)
        return dict(found)

    def end_batch(self) -> None:
        clear_journal(self.t)
        self.before = {}

    def agree(self) -> None:
        """Check that table, indexes and journal agree with the model."""
        kept = set(self.model)
        if load(self.t, JOURNALING):
            assert self.journal() == self.before
            kept |= set(self.before)
        assert self.scan() == self.model
        assert load(self.t, LIVE) == len(kept)
        assert load(self.t, FAILED) == 0
        for key in kept:
            assert self.get(key) == self.model.get(key)
        for i, positions in enumerate(self.positions):
            slices: dict[Key, list[Key]] = {}
            for key in sorted(kept):
                slices.setdefault(tuple(key[p] for p in positions), []).append(key)
            for part, keys in slices.items():
                assert self.slice(i, part) == keys
                if self.digested[i] >= 0:
                    self.agree_digests(i, part)

    def agree_digests(self, index: int, part: Key) -> None:
        """Check that each row of a slice is found by the digest of its remaining word, and other digests are not
        found."""
        group, place = slice_of(self.indexes[index], part), self.digested[index]
        rows = [row_at(self.t, load32(slice_rows(group), i)) for i in range(slice_count(group))]
        digests = [digest_of(load(row, place)) for row in rows]
        assert [digest_at(group, i, self.t, place) for i in range(len(rows))] == digests
        assert is_scanned(group) == (load(group, BLOCK_CAPACITY) > INLINE and len(rows) <= SCANNED)
        if is_scanned(group):
            for digest in {*digests, *map(digest_of, range(12))}:
                position = position_of(group, digest)
                assert position == (digests.index(digest) if digest in digests else -1)
                if position >= 0:
                    key = words_at(rows[position], load(self.t, KEY))
                    assert find_from(self.t, group, position, key) == find(self.t, key) == rows[position]
                    assert find_from(self.t, group, position, (-1,) * len(key)) == 0


@contextmanager
def relation(
    key: int,
    payload: int,
    indexes: tuple[tuple[int, ...], ...] = (),
    ordered: int | tuple[int, ...] | None = None,
    journal: bool = False,
    digests: bool = False,
    folds: tuple[tuple[int, int], ...] = (),
    sums: tuple[int, ...] = (),
    small: bool = False,
    placed: bool = False,
) -> Iterator[Relation]:
    """A Relation whose memory is released at the end."""
    made = Relation(key, payload, indexes, ordered, journal, digests, folds, sums, small, placed)
    try:
        yield made
    finally:
        free_table(made.t)
