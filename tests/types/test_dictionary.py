"""The dictionary gives each string a code, and frees codes and memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from freshviews.types import NULL, Dictionary
from freshviews.types.dictionary import Living

TraceFunction = Callable[[FrameType, str, Any], Any]


def test_codes_count_from_zero_in_order_of_first_use() -> None:
    dictionary = Dictionary()
    assert [dictionary.encode(text) for text in ("b", "a", "b", "")] == [0, 1, 0, 2]
    assert len(dictionary) == 3
    assert [dictionary.decode(code) for code in range(3)] == ["b", "a", ""]
    assert dictionary.entries(1) == ["a", ""]
    assert dictionary.find("a") == 1
    assert dictionary.find("c") is None
    assert len(dictionary) == 3


def test_a_dictionary_is_rebuilt_from_its_entries() -> None:
    dictionary = Dictionary(["b", "a"])
    copy = Dictionary(dictionary.entries())
    assert copy.encode("a") == 1
    with pytest.raises(ValueError, match="already"):
        copy.extend(["c", "a"])


def test_an_unknown_code_raises_index_error() -> None:
    with pytest.raises(IndexError):
        Dictionary(["a"]).decode(1)
    with pytest.raises(IndexError):
        Dictionary(["a"]).decode(NULL)


def test_a_refused_value_adds_no_string_to_a_dictionary() -> None:
    dictionary = Dictionary()
    for wrong in (1, None, b"x", ["x"], "\udcff"):
        with pytest.raises((TypeError, ValueError)):
            dictionary.encode(wrong)
    assert len(dictionary) == 0


def test_only_distinct_strings_of_a_column_are_looked_up() -> None:
    dictionary = Dictionary()
    looked_up: list[str] = []
    encode = dictionary.encode
    dictionary.encode = lambda text: looked_up.append(text) or encode(text)  # type: ignore[func-returns-value]
    codes = dictionary.encode_arrow(pa.array(["x", "y", None] * 100))
    assert codes.tolist() == [0, 1, NULL] * 100
    assert looked_up == ["x", "y"]


def test_short_and_long_arrays_decode_to_the_same_texts() -> None:
    dictionary = Dictionary(map(str, range(1000)))
    few = np.array([3, NULL, 999])
    assert dictionary.decode_array(few).to_pylist() == ["3", None, "999"]
    many = np.resize(few, 3000)
    assert dictionary.decode_array(many).to_pylist() == ["3", None, "999"] * 1000
    dictionary.encode("later")
    assert dictionary.decode_array(np.array([1000])).to_pylist() == ["later"]
    assert dictionary.decode_array(np.resize([1000, 0], 999)).to_pylist()[:2] == ["later", "0"]
    assert dictionary.decode_array(np.array([], np.int64)).type == pa.string()


def test_the_bytes_of_a_dictionary_grow_and_shrink_with_its_strings() -> None:
    known = Dictionary()
    empty = known.bytes
    for i in range(1000):
        known.encode(f"{i:0100}")
    full = known.bytes
    # A string takes its bytes, the header of an object, its code, and an entry in each of two dicts.
    assert 1000 * 149 <= full - empty <= 1000 * 600
    before = known.bytes
    known.free(list(range(500)))
    assert known.bytes < before


class _Held:
    pass


def test_references_to_garbage_collected_objects_are_dropped() -> None:
    held = Living()
    kept = [_Held() for _ in range(3)]
    for one in kept:
        held.add(one)
    for _ in range(10_000):
        held.add(_Held())
    assert list(held) == kept
    assert len(held._refs) < 2048
    del kept[1], one
    assert list(held) == kept


def test_no_freed_string_is_remembered_after_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freshviews.types.dictionary.RECENT", 2)
    interrupted = 0
    for stop in range(40):
        dictionary = Dictionary(["a", "b"])
        lines = 0

        def line(frame: FrameType, event: str, argument: object, stop: int = stop) -> TraceFunction:
            nonlocal lines
            lines += event == "line"
            if lines == stop:
                raise KeyboardInterrupt
            return line

        def call(frame: FrameType, event: str, argument: object, line: TraceFunction = line) -> TraceFunction | None:
            return line if frame.f_code.co_name in ("remember", "forget", "leave") else None

        before = sys.gettrace()
        sys.settrace(call)
        try:
            dictionary.encode("lost")
            dictionary.free([2])
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            sys.settrace(before)
        dictionary.free([2])
        texts = ["other", "lost", "a", "b"]
        assert [dictionary.decode(dictionary.encode(text)) for text in texts] == texts
    assert 8 < interrupted < 40
