"""Machine code in files: arguments and results of calls from Python, and damaged files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from freshviews.kernel.machine import native
from freshviews.kernel.machine.functions import Function, direct
from freshviews.kernel.memory.mem import PURE_PYTHON, f64, jit

pytestmark = pytest.mark.skipif(PURE_PYTHON, reason="nothing is compiled")


@jit
def difference(a: int, b: int) -> int:
    """Of two words."""
    return a - b


@jit
def scaled(x: float, n: int) -> float:
    """A double and a word."""
    return x * n


@jit
def ends(key: tuple[int, ...], negative: bool) -> tuple[int, float, bool]:
    """The first word of a tuple, the last one as a double, and the other argument."""
    return key[0], f64(key[len(key) - 1]), not negative


@jit
def nothing() -> None:
    """No argument and no result."""


SCRIPT = """
import sys
from freshviews.kernel.machine.cache import cache_folder
from freshviews.kernel.codes.string_slots import hash_text
from freshviews.kernel.memory.mem import allocate
hash_text(allocate(1), 8)
print("numba" in sys.modules, *sorted(path.name.partition("-")[0] for path in cache_folder().glob("hash_text-*.code")))
"""


def test_arguments_and_results_of_each_kind_are_converted() -> None:
    assert (difference(3, 5), difference(True, 2), difference(-(2**62), 2**62)) == (-2, -1, -(2**63))
    assert scaled(1.5, 4) == 6.0 and scaled(-1.0, 1) == -1.0
    assert ends((7, 0), False) == (7, 0.0, True)
    assert ends((1, 2, 4607182418800017408), True) == (1, 1.0, False)
    assert nothing() is None
    assert difference(-1, -1) == 0


def test_arguments_that_are_not_words_raise_python_errors() -> None:
    difference(1, 1)
    for words, error in (((1,), TypeError), ((1, 2, 3), TypeError), (("a", 1), TypeError), ((2**63, 1), OverflowError)):
        with pytest.raises(error):
            difference(*words)
    scaled(1.0, 1)
    with pytest.raises(TypeError):
        scaled("x", 1)  # type: ignore[arg-type]
    call = function_of(ends).made["t2w"].call if ends((1, 2), True) else None
    assert call is not None
    for key in ((1,), (1, "b"), 5):
        with pytest.raises((TypeError, SystemError)):
            call(key, True)


def test_a_function_loaded_from_machine_code_is_a_python_builtin() -> None:
    difference(1, 1)
    assert type(direct(difference)) is type(len)
    assert function_of(difference).kinds == "ww" and function_of(ends).kinds is None


def test_a_file_of_machine_code_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "f.code"
    stored = native.Stored("symbol", "entry", ("other",), b"code\n" * 100, b"entry")
    assert native.read(path) is None
    native.write(path, stored)
    assert native.read(path) == stored and list(tmp_path.iterdir()) == [path]
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[:20], b"", whole[:-1] + b"x", b"{}\n", b"[]\n", b"null\n", b"\xff\xfe\n" + whole):
        path.write_bytes(damaged)
        assert native.read(path) is None


def test_a_function_whose_file_is_damaged_is_compiled_again(tmp_path: Path) -> None:
    def run() -> list[str]:
        (tmp_path / "script.py").write_text(SCRIPT)
        environment = os.environ | {"FRESHVIEWS_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, str(tmp_path / "script.py")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert (run(), run()) == (["True", "hash_text"], ["False", "hash_text"])
    (path,) = (tmp_path / "cache").rglob("hash_text-*.code")
    path.write_bytes(path.read_bytes()[:-100])
    assert (run(), run()) == (["True", "hash_text"], ["False", "hash_text"])


AT_THE_END = """
import freshviews as fv
from freshviews.kernel.machine import native
db = fv.Database()
db.execute("CREATE TABLE r (a INT, b INT); CREATE MATERIALIZED VIEW v AS SELECT a, SUM(b) AS n FROM r GROUP BY a")
db.insert("r", [(1, 2)])
# As when a process ends: the module is emptied, other objects take its memory, then the functions go.
method = native._Method
native.__dict__.clear()
filled = [method(b"x", 1, -1, None) for _ in range(100_000)]
"""


def test_functions_may_outlive_the_module_that_made_them() -> None:
    done = subprocess.run([sys.executable, "-c", AT_THE_END], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def function_of(kernel: object) -> Function:
    """A kernel as a Function."""
    assert isinstance(kernel, Function)
    return kernel


@pytest.mark.parametrize(
    ("settings", "same"),
    [
        ({"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": ""}, True),
        ({"NUMBA_CPU_NAME": "generic"}, True),
        ({}, False),
    ],
)
def test_machine_code_is_shared_only_if_environment_variables_set_the_processor(
    settings: dict[str, str], same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    found = set()
    for host in ("znver4", "haswell"):
        monkeypatch.setattr(native.binding, "get_host_cpu_name", lambda host=host: host)
        found.add(native.processor.__wrapped__())
    assert (len(found) == 1) == same
