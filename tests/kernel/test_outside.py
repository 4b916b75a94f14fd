from __future__ import annotations

from pathlib import Path

import pytest

from freshviews.kernel.memory.mem import PURE_PYTHON, allocate, jit, load, release, store
from freshviews.kernel.memory.outside import outside
from tests.two_processes import printed_by_two

SCRIPT = """
import sys
from freshviews.kernel.memory.mem import allocate, jit
from freshviews.kernel.hash.table import new_table, upsert
@jit
def fill(t, n):
    for i in range(n):
        upsert(t, (i,))
    return n
fill(new_table(1, 1, 0, 0, 0), 1000)
print("numba" in sys.modules)
"""

AT_ONCE = """
import time
from concurrent.futures import ThreadPoolExecutor
from freshviews.kernel.compiler import primitives
from freshviews.kernel.memory.mem import jit
from freshviews.kernel.memory.outside import outside
usual = primitives.by_symbol
def slow(function, enter):
    if function is twice:
        time.sleep(1)
    usual(function, enter)
primitives.by_symbol = slow
@outside
def twice(n: int) -> int:
    return 2 * n
@jit
def one(n):
    return twice(n) + 1
@jit
def other(n):
    return twice(n) + 2
with ThreadPoolExecutor() as threads:
    print([found.result() for found in [threads.submit(one, 5), threads.submit(other, 5)]])
"""


@outside
def add_up(address: int, words: int) -> int:
    """Sum of words."""
    total = 0
    for i in range(words):
        total += load(address, i)
    return total


@outside
def fill_up(address: int, words: int) -> None:
    """Words 0, 1, ..."""
    for i in range(words):
        store(address, i, i)


@jit
def both(address: int, words: int) -> int:
    """One after the other, from compiled code."""
    fill_up(address, words)
    return add_up(address, words)


def test_python_and_compiled_code_call_kernels_by_name() -> None:
    block = allocate(10)
    assert both(block, 10) == 45
    fill_up(block, 5)
    assert add_up(block, 10) == add_up(block, 10) == 45
    release(block)


def test_two_kernels_with_the_same_name_are_refused() -> None:
    if not PURE_PYTHON:
        with pytest.raises(AssertionError, match="add_up"):
            outside(add_up.body)  # type: ignore[attr-defined]


@pytest.mark.skipif(PURE_PYTHON, reason="nothing is compiled")
def test_threads_that_compile_at_the_same_time_define_each_symbol(tmp_path: Path) -> None:
    assert printed_by_two(AT_ONCE, tmp_path) == [["[11,", "12]"]] * 2


@pytest.mark.skipif(PURE_PYTHON, reason="nothing is compiled")
def test_cached_code_finds_its_kernels_by_name(tmp_path: Path) -> None:
    assert printed_by_two(SCRIPT, tmp_path) == [["True"], ["False"]]
