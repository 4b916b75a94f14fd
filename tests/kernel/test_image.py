"""A table restored from its image agrees with a table that was never interrupted."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from freshviews.kernel.hash import index, table
from freshviews.kernel.hash.index import slice_of
from freshviews.kernel.hash.pending import NEVER
from freshviews.kernel.hash.renew import reset_table
from freshviews.kernel.hash.table import EAGER_BELOW, LIVE, free_table, table_bytes
from freshviews.kernel.image import Array, image_of, shape_of, take_image
from freshviews.kernel.memory.mapping import map_file, release_block, reserve, unmap, widen_block
from freshviews.kernel.memory.mem import PURE_PYTHON, load, store
from freshviews.kernel.ordered.index import INTEGER_ORDER
from freshviews.kernel.ordered.ranges import ordered_first, ordered_last
from freshviews.store import array_file
from freshviews.store.array_file import FORMAT, READ, ArrayFile, write_arrays
from tests.conftest import GOLDEN
from tests.kernel.relation import Key, Payload, Relation, relation

STEPS = 150 if PURE_PYTHON else 1500


@pytest.fixture(params=[1, 1 << 18], ids=["mapped", "read"])
def image_file(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of an image whose arrays are all mapped, or whose small arrays are read."""
    monkeypatch.setattr(array_file, "MAPPED", request.param)
    return tmp_path / "table"


@contextmanager
def reopened(r: Relation, path: Path) -> Iterator[Relation]:
    """A copy of the relation, written to a file and read back."""
    before = image_of(r.t)
    write_arrays(path, {"kept": before.kept}, before.arrays, sync=False)
    kind, journal = INTEGER_ORDER if r.ordered else None, load(r.t, table.JOURNALING) == 1
    key, payload = load(r.t, table.KEY), load(r.t, table.PAYLOAD)
    other = Relation(key, payload, r.positions, kind, journal, r.digests, r.folds)
    assert shape_of(other.t) == before.shape
    with ArrayFile(path) as file:
        mapping = file.map(0, len(file), verify=True)
        take_image(other.t, file.about["kept"], mapping)
    path.unlink()
    other.model = dict(r.model)
    try:
        yield other
    finally:
        free_table(other.t)
        unmap(mapping.low, mapping.high - mapping.low)


def steps_of(order: random.Random, words: int, present: dict[Key, Payload], growing: bool) -> Iterator[tuple[Key, int]]:
    """Rows to add, and their multiplicities; reads ``present`` as it changes."""
    for _ in range(STEPS):
        if not growing and present and order.random() < 0.8:
            key = next(iter(present))
            yield key, -present[key][0]
        else:
            yield tuple(order.randrange(40) for _ in range(words)), order.choice([-1, 1, 1])


SHAPES = pytest.mark.parametrize(
    "words, indexes, ordered, journal",
    [
        (1, (), None, False),
        (2, ((0,), (1,)), None, True),
        (3, ((2,), (0, 1), ()), INTEGER_ORDER, False),
        (0, (), None, True),
    ],
)


@SHAPES
def test_a_restored_table_agrees_with_the_original(
    image_file: Path, words: int, indexes: tuple[tuple[int, ...], ...], ordered: int | None, journal: bool
) -> None:
    order = random.Random(words)
    with relation(words, 1, indexes, ordered, journal, digests=journal) as r:
        for phase in range(6):
            with reopened(r, image_file) as other:
                other.agree()
                for key, m in steps_of(order, words, r.model, growing=phase % 2 == 0):
                    r.add(key, (m,))
                    other.add(key, (m,))
                other.agree()
                for one in (r, other):
                    one.end_batch()
                    one.agree()
                assert image_of(other.t).kept[1:] == image_of(r.t).kept[1:]
                assert table_bytes(other.t) == table_bytes(r.t)
                if ordered is not None:
                    for *prefix, _ in list(r.model)[:20]:
                        for end in (ordered_first, ordered_last):
                            assert end(other.ordered, other.t, tuple(prefix)) == end(r.ordered, r.t, tuple(prefix))


def test_an_image_of_a_restored_table_equals_the_first_image(image_file: Path) -> None:
    order = random.Random(1)
    with relation(2, 2, ((0,), (1, 0))) as r:
        for key, m in steps_of(order, 2, r.model, growing=True):
            r.add(key, (m, 1))
        with reopened(r, image_file) as one, reopened(one, image_file) as two:
            kept = image_of(one.t).kept
            assert image_of(two.t).kept == kept
            assert [contents(a) for a in image_of(two.t).arrays] == [contents(a) for a in image_of(r.t).arrays]


def contents(array: Array) -> bytes:
    return b"".join(bytes(piece) for piece in array.pieces())


@pytest.mark.parametrize("end", ["shrinks", "resets", "grows"])
def test_a_mapped_table_never_passes_its_mapping_to_free_or_realloc(image_file: Path, end: str) -> None:
    order = random.Random(end)
    with relation(2, 1, ((0,), (1,)), digests=True) as r:
        for key, m in steps_of(order, 2, r.model, growing=True):
            r.add(key, (m,))
        for _ in range(3 if PURE_PYTHON else 10):
            with reopened(r, image_file) as other:
                if end == "grows":
                    # New keys and growing large blocks copy every array out of the mapping.
                    for i in range(STEPS):
                        other.add((i % 3, 1000 + i), (1,))
                        other.add((1000 + i, i % 3), (1,))
                elif end == "shrinks":
                    for key in list(other.model):
                        other.add(key, (-other.model[key][0],))
                    assert load(other.t, LIVE) == 0
                else:
                    reset_table(other.t)
                    other.model.clear()
                other.agree()
                other.add((5, 5), (1,))
                other.agree()
        r.agree()


def test_rows_of_a_mapped_table_can_grow_within_their_mapping(image_file: Path) -> None:
    with relation(1, 1) as r:
        for i in range(300):
            r.add((i,), (1,))
        with reopened(r, image_file) as other:
            rows = load(other.t, table.ROWS)
            for i in range(300, 590):
                other.add((i,), (1,))
            assert load(other.t, table.ROWS) == rows
            with reopened(other, image_file) as again:
                assert load(again.t, table.CAPACITY) <= 2 * 590


def test_a_block_larger_than_a_write_chunk_is_written_whole(
    image_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freshviews.kernel.image._CHUNK", 8)
    with relation(2, 1, ((0,),)) as r:
        for i in range(200):
            r.add((i % 2 * (i % 7), i), (1,))
        with reopened(r, image_file) as other:
            other.agree()


def test_blocks_of_an_index_are_found_after_their_groups_moved(image_file: Path) -> None:
    """Both blocks made before the groups moved and blocks made after."""
    with relation(2, 1, ((0,),)) as r:
        for i in range(60):
            r.add((i % 6, i), (1,))
        with reopened(r, image_file) as other:
            groups = load(other.indexes[0], index.GROUPS)
            for i in range(STEPS):
                other.add((i, -i), (1,))
                other.add((i % 6, 100 + i), (1,))
            assert load(other.indexes[0], index.GROUPS) != groups
            other.agree()
            assert slice_of(other.indexes[0], (-1,)) == 0


def test_mapped_blocks_are_copied_when_widened() -> None:
    low = reserve(1 << 16)
    high = low + (1 << 16)
    store(low, 3, 33)
    wider = widen_block(low, 4, 100, low, high)
    assert not low <= wider < high and load(wider, 3) == 33
    again = widen_block(wider, 100, 200, low, high)
    assert load(again, 3) == 33
    release_block(low, low, high)
    release_block(again, low, high)
    release_block(0, 0, 0)
    assert load(low, 3) == 33
    unmap(low, 1 << 16)


def test_writes_to_a_mapping_do_not_reach_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345678" * 8192)
    low = reserve(1 << 17)
    with path.open("rb") as file:
        map_file(low, 1 << 16, file.fileno(), 0)
    store(low, 0, 7)
    store(low, 1 << 13, 8)
    assert load(low, 0) == 7 and load(low, 1) == int.from_bytes(b"12345678", "little")
    assert path.read_bytes() == b"12345678" * 8192
    unmap(low, 1 << 17)
    with pytest.raises(OSError):
        reserve(1 << 62)


@pytest.mark.parametrize("written_as", READ)
def test_a_file_of_the_current_format_can_be_read(
    request: pytest.FixtureRequest, written_as: int
) -> None:
    """If this fails, a kernel has changed the layout of its arrays: increment ``FORMAT``, then --regenerate."""
    path = GOLDEN / f"arrays-{written_as}.image"
    order = random.Random(5)
    with relation(2, 2, ((0,), (1,)), INTEGER_ORDER) as r:
        for _ in range(60):
            r.add((order.randrange(9), order.randrange(9)), (order.choice([-1, 1]), 1))
        if request.config.getoption("--regenerate") and written_as == FORMAT and not path.exists():
            before = image_of(r.t)
            write_arrays(path, {"kept": before.kept}, before.arrays, sync=False)
        with relation(2, 2, r.positions, INTEGER_ORDER) as other, ArrayFile(path) as file:
            mapping = file.map(0, len(file), verify=True)
            take_image(other.t, file.about["kept"], mapping)
            other.model = dict(r.model)
            other.agree()
            for key in list(other.model):
                assert ordered_last(other.ordered, other.t, key[:1]) == ordered_last(r.ordered, r.t, key[:1])
            for key in list(other.model):
                other.add(key, tuple(-word for word in other.model[key]))
            other.agree()
            assert load(other.t, LIVE) == 0
            # The bound of the sums of a table without pending rows is not stored.
            assert (load(other.t, EAGER_BELOW) == NEVER) == (written_as == 1)
        unmap(mapping.low, mapping.high - mapping.low)


def test_tables_with_different_indexes_have_different_image_shapes() -> None:
    shapes = set()
    for positions, ordered in [((0,), None), ((1,), None), ((0,), INTEGER_ORDER)]:
        with relation(2, 1, (positions,), ordered) as r:
            shapes.add(shape_of(r.t))
    assert len(shapes) == 3
