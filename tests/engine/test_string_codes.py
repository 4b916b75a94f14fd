"""Strings in native memory behave like a dict, and their memory grows and shrinks with them."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from freshviews.engine.codes.string_codes import StringCodes, codes_of
from freshviews.kernel.codes import ingest, string_heap, string_slots
from freshviews.kernel.memory.mem import PURE_PYTHON, load
from freshviews.store import strings as files_of_strings
from freshviews.store.strings import read_strings, write_strings
from freshviews.types import NULL, Dictionary

pytestmark = pytest.mark.plain_python


def native(entries: list[str] | None = None) -> tuple[Dictionary, StringCodes]:
    dictionary = Dictionary(entries or [])
    return dictionary, codes_of(dictionary)


def word(store: StringCodes, number: int) -> int:
    return load(store.address, number)


def free_codes(dictionary: Dictionary) -> list[int]:
    return [code for code, text in enumerate(dictionary.entries()) if text is None]


def settle(dictionary: Dictionary, step: int = 50) -> None:
    while dictionary.give_back(step):
        pass


def some_text(rng: random.Random) -> str:
    size = rng.choice([0, 1, 2, 3, 5, 8, 9, 34, 34, 34, 63, 64, 65, 130, 300, 9000 if rng.random() < 0.02 else 7])
    if rng.random() < 0.2:
        return "".join(rng.choices("abä\U0001f600", k=size))
    return f"{rng.randrange(10**9):0{size}}"[:size]


def agrees(dictionary: Dictionary, model: dict[str, int]) -> None:
    assert dictionary.strings() == len(model)
    by_code = {code: text for text, code in model.items()}
    assert dictionary.entries() == [by_code.get(code) for code in range(len(dictionary))]
    for text, code in model.items():
        assert dictionary.find(text) == code
        assert dictionary.decode(code) == text
    for free in free_codes(dictionary):
        with pytest.raises(IndexError):
            dictionary.decode(free)


@pytest.mark.parametrize("seed", range(4 if PURE_PYTHON else 12))
def test_random_operations_of_the_string_dictionary_agree_with_a_dict(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("freshviews.types.dictionary.RECENT", 20)
    rng = random.Random(seed)
    dictionary, store = native(["", "first"])
    model = {"": 0, "first": 1}
    before: list[str] = []
    for step in range(150 if PURE_PYTHON else 1500):
        kind = rng.random()
        if kind < 0.45:
            texts = [some_text(rng) for _ in range(rng.randrange(1, 40))]
            texts += rng.choices(list(model), k=5) if model else []
            for text in texts:
                model[text] = dictionary.encode(text)
        elif kind < 0.55:
            texts = [some_text(rng) for _ in range(rng.randrange(1, 90))]
            column = pa.array([*texts, None, *texts[:3]], rng.choice([pa.string(), pa.large_string()]))
            codes = np.array([*map(dictionary.find, texts), NULL, *map(dictionary.find, texts[:3])], object)
            known = np.array([string_slots.UNKNOWN if code is None else code for code in codes], np.int64)
            structure = np.zeros(ingest.ARRAY_WORDS, np.int64)
            column._export_to_c(structure.ctypes.data)
            layout = ingest.STRING if column.type == pa.string() else ingest.LARGE_STRING
            store.enter_column(structure.ctypes.data, layout, known)
            assert known[len(texts)] == NULL
            model.update(zip(texts, known[: len(texts)].tolist(), strict=True))
        elif kind < 0.75 and model:
            gone = rng.sample(sorted(model), min(len(model), rng.choice([1, 5, len(model) // 2, len(model)])))
            before += gone
            freed = [model.pop(text) for text in gone]
            assert dictionary.free(sorted([*freed, *free_codes(dictionary)[:3]])) == len(gone)
        elif kind < 0.9:
            dictionary.give_back(rng.choice([1, 40, 400]))
        elif kind < 0.93:
            settle(dictionary)
        elif kind < 0.97:
            assert all(dictionary.find(text) == model.get(text) for text in before[-50:])
            codes = np.array(rng.choices([*model.values(), NULL], k=40), np.int64)
            by_code = {code: text for text, code in model.items()}
            assert dictionary.decode_array(codes).to_pylist() == [by_code.get(code) for code in codes.tolist()]
            wide = np.repeat(codes, 3)[::3]
            assert dictionary.decode_array(wide).to_pylist() == dictionary.decode_array(codes).to_pylist()
        else:
            path = tmp_path / f"strings{step}"
            assert write_strings(path, dictionary, 0, sync=False) == len(dictionary)
            for copy in (Dictionary(), native()[0]):
                read_strings(path, copy)
                agrees(copy, model)
                free = free_codes(dictionary)
                copy.encode("no hole is used yet")
                assert copy.find("no hole is used yet") in (len(dictionary), model.get("no hole is used yet"))
                assert copy.free(free) == 0
                if free:
                    assert copy.encode("but now") in free
            path.unlink()
        if step % 10 == 0:
            agrees(dictionary, model)
        if rng.random() < 0.01:
            dictionary, store = native([])
            model, before = {}, []
    agrees(dictionary, model)


def test_the_lowest_free_code_is_used_first() -> None:
    dictionary, _ = native([f"{i}" for i in range(100)])
    assert dictionary.free([*range(10, 20), *range(90, 100)]) == 20
    assert [dictionary.encode(f"new {i}") for i in range(3)] == [10, 11, 12]
    settle(dictionary)
    assert len(dictionary) == 90
    assert dictionary.encode("of another size") == 13


def test_a_refused_file_of_strings_adds_no_string_to_the_dictionary() -> None:
    dictionary, store = native(["x", "y"])
    offsets = np.array([0, 1, 3, 4], np.int64)
    with pytest.raises(ValueError, match="already"):
        dictionary.extend_flat(offsets, np.frombuffer(b"abby", np.uint8), [1])
    agrees(dictionary, {"x": 0, "y": 1})
    assert dictionary.encode("a") == 2
    assert word(store, string_slots.LIVE) == 3


def test_bytes_of_free_codes_in_a_file_are_ignored() -> None:
    for dictionary in (Dictionary(["x"]), native(["x"])[0]):
        dictionary.extend_flat(np.array([0, 1, 3, 4], np.int64), np.frombuffer(b"abbc", np.uint8), [1])
        agrees(dictionary, {"x": 0, "a": 1, "c": 3})
        assert dictionary.encode("bb") == 4
        assert dictionary.free([2]) == 0
        assert dictionary.encode("d") == 2


def test_strings_get_the_same_codes_all_at_once_and_one_by_one() -> None:
    rng = random.Random(5)
    one, other = native()[0], native()[0]
    for _ in range(5 if PURE_PYTHON else 60):
        texts = rng.choices([some_text(rng) for _ in range(40)], k=60)
        assert one.encode_all(texts).tolist() == [other.encode(text) for text in texts]
    with pytest.raises(UnicodeEncodeError):
        one.encode_all(["new", "\udcff"])
    assert one.find("new") is None
    assert one.entries() == other.entries()


COUNT = 2_000 if PURE_PYTHON else 200_000


def test_a_string_takes_few_bytes_beyond_its_own_length() -> None:
    dictionary, store = native()
    empty = store.bytes()
    for i in range(COUNT):
        dictionary.encode(f"{i:034}")
    # A head of one byte, a place of five, at most two slots of five, and two more while slots grow.
    most = 34 * 1.26 + 1 + 5 * 1.26 + 5 * (2.0 + 1.4)
    assert 34 + 1 + 5 <= (store.bytes() - empty) / COUNT <= most
    settle(dictionary)
    assert 34 + 1 + 5 <= store.bytes() / COUNT <= most - 5 * 1.4


@pytest.mark.parametrize("left", [0.0, 0.02, 0.5])
def test_memory_of_freed_strings_is_released_in_bounded_steps(left: float) -> None:
    dictionary, store = native()
    for i in range(COUNT):
        dictionary.encode(f"{i:034}")
    settle(dictionary)
    full = store.bytes()
    rng = random.Random(0)
    gone = [i for i in range(COUNT) if rng.random() >= left]
    kept = {f"{i:034}": i for i in set(range(COUNT)) - set(gone)}
    for start in range(0, len(gone), 512):
        dictionary.free(gone[start : start + 512])
    steps = 0
    while dictionary.give_back(64) and steps < COUNT:
        steps += 1
    assert steps < COUNT // 10
    places = 5 * len(dictionary)
    assert store.bytes() - 1.4 * places <= 1.5 * left * full + 20_000
    if left == 0:
        assert len(dictionary) == 0
    for text, code in rng.sample(sorted(kept.items()), min(len(kept), 500)):
        assert dictionary.find(text) == code
        assert dictionary.decode(code) == text


def test_the_slots_of_a_string_dictionary_may_grow_again_while_they_shrink() -> None:
    dictionary, store = native()
    count = COUNT // 10
    for i in range(count):
        dictionary.encode(f"{i}")
    settle(dictionary)
    dictionary.free(list(range(10, count)))
    model = {f"{i}": i for i in range(10)}
    while load(store.address, string_heap.NEXT) == 0:
        assert dictionary.give_back(1)
    for i in range(count):
        text = f"again {i}"
        model[text] = dictionary.encode(text)
    agrees(dictionary, model)


def test_other_threads_decode_strings_while_strings_are_added_and_freed() -> None:
    dictionary, _ = native([f"kept {i}" for i in range(100)])
    codes = np.arange(100)
    expected = [f"kept {i}" for i in range(100)]
    wrong: list[object] = []
    end = threading.Event()

    def decode() -> None:
        while not end.is_set():
            if dictionary.decode_array(codes).to_pylist() != expected or dictionary.store.text(7) != "kept 7":
                wrong.append(1)

    threads = [threading.Thread(target=decode) for _ in range(2)]
    for thread in threads:
        thread.start()
    for turn in range(3 if PURE_PYTHON else 30):
        new = [dictionary.encode(f"{turn} {i:0100}") for i in range(100 if PURE_PYTHON else 3000)]
        dictionary.free(sorted(new))
        settle(dictionary)
    end.set()
    for thread in threads:
        thread.join()
    assert not wrong


def test_free_codes_are_kept_when_a_dictionary_moves_to_native_memory() -> None:
    dictionary = Dictionary(["a", "b", "c"])
    dictionary.free([1])
    codes_of(dictionary)
    agrees(dictionary, {"a": 0, "c": 2})
    assert dictionary.encode("an image may name 1") == 3
    assert dictionary.free_unmarked(np.array([True, False, True, True]), 0, 4) == 0
    assert dictionary.encode("longer than before") == 1


@pytest.mark.parametrize("first", ["native", "objects"])
def test_free_codes_of_a_file_are_reused_only_after_a_collection(first: str) -> None:
    """Strings of a snapshot are read before tables exist, which move them to native memory."""
    dictionary = native()[0] if first == "native" else Dictionary()
    dictionary.extend_flat(np.array([0, 1, 1, 2], np.int64), np.frombuffer(b"ab", np.uint8), [1])
    codes_of(dictionary)
    assert dictionary.encode("new") == 3
    assert free_codes(dictionary) == [1]


def test_freed_strings_are_forgotten_even_if_memory_runs_out_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    for function in ("list_unmarked", "free_codes"):
        dictionary, _ = native(["kept", "lost"])
        freed = dictionary.freed
        body = getattr(string_heap, function)

        def and_fail(*words: int, body: Any = body) -> None:
            body(*words)
            raise MemoryError

        with monkeypatch.context() as patched:
            patched.setattr(string_heap, function, and_fail)
            with pytest.raises(MemoryError):
                dictionary.free_unmarked(np.array([True, False]), 0, 2)
        other, again = dictionary.encode("other"), dictionary.encode("lost")
        assert [dictionary.decode(code) for code in (0, other, again)] == ["kept", "other", "lost"]
        assert dictionary.freed > freed or dictionary.find("lost") == 1


def test_a_signal_handler_may_read_strings_while_other_strings_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "long " * 100
    dictionary, store = native(["a", long])
    codes = np.array([1, 0])
    by_handler: list[object] = []
    by_reader: list[object] = []
    inside = False
    for function in ("sizes_of", "copy_texts", "copy_text", "sizes_between", "copy_between", "find_text"):
        body = getattr(string_heap, function)

        def interrupted(*words: int, body: Any = body) -> Any:
            nonlocal inside
            if not inside:
                inside = True
                by_handler.append([store.text(0), store.array(codes).to_pylist(), dictionary.entries()])
                inside = False
            return body(*words)

        monkeypatch.setattr(string_heap, function, interrupted)

    def read() -> None:
        by_reader.append([store.text(1), store.array(codes).to_pylist(), store.find("a", b"a")])
        by_reader.append(dictionary.entries())

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "it waits for itself"
    assert by_reader == [[long, [long, "a"], 0], ["a", long]]
    assert len(by_handler) >= 6 and all(one == ["a", [long, "a"], ["a", long]] for one in by_handler)


def test_a_signal_handler_may_change_strings_during_a_read(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"text": "a" * 300, "array": "b" * 30, "entries": "c" * 30}
    dictionary, store = native([*texts.values(), *(f"{i}" for i in range(20))])
    readers = {
        "text": ("copy_text", lambda: store.text(0)),
        "array": ("sizes_of", lambda: store.array(np.array([3, 1, 4]))),
        "entries": ("sizes_between", lambda: dictionary.data_between(1, np.array([0, 30, 60]))),
    }
    for code, (function, read) in enumerate(readers.values()):
        longer = f"{code}" * 5000
        body = getattr(string_heap, function)

        def changed(*words: int, body: Any = body, code: int = code, longer: str = longer) -> Any:
            result = body(*words)
            monkeypatch.undo()
            assert dictionary.free([code]) == 1
            assert dictionary.encode(longer) == code
            return result

        monkeypatch.setattr(string_heap, function, changed)
        read()
        monkeypatch.undo()
    assert store.text(0) == "0" * 5000
    # The kernels skip strings that do not fit, and write nothing behind the buffer.
    out = np.full(8, 7, np.uint8)
    string_heap.copy_between(store.address, 0, 2, np.array([0, 3, 6]).ctypes.data, out.ctypes.data)
    ends = np.array([0, 3, 6], np.int32)
    named = np.array([0, 1])
    string_heap.copy_texts(store.address, named.ctypes.data, 1, 2, ends.ctypes.data + 4, out.ctypes.data)
    assert out.tolist() == [7] * 8


def test_a_file_of_strings_is_written_in_pieces_of_few_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["", "a", "b" * 30, "cc", "ddd", "é" * 20, *(f"{i}" for i in range(20)), "z" * 9]
    for dictionary in (Dictionary(texts), native(texts)[0]):
        dictionary.free([1, 4, 8])
        sizes: list[int] = []
        between = dictionary.data_between

        def data_between(first: int, starts: Any, between: Any = between, sizes: list[int] = sizes) -> Any:
            data = between(first, starts)
            sizes.append(len(data))
            return data

        with monkeypatch.context() as patched:
            patched.setattr(files_of_strings, "_PIECE", 8)
            patched.setattr(dictionary, "data_between", data_between, raising=False)
            assert write_strings(tmp_path / "strings", dictionary, 0, sync=False) == len(texts)
        assert [size for size in sizes if size > 8] == [30, 40, 9]
        assert sum(sizes) == sum(len(text.encode()) for text in dictionary.entries() if text is not None)
        copy = Dictionary()
        read_strings(tmp_path / "strings", copy)
        assert copy.entries() == dictionary.entries()
