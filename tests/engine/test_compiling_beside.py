"""A first view runs as plain Python while another process compiles, then as compiled code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.terminals import on_terminal

PREPARE = """
import os, random, signal, sys, threading, time
import freshviews
from freshviews.kernel.machine import beside

VIEWS = '''
CREATE TABLE r (a BIGINT, x BIGINT, s STRING);
CREATE TABLE d (a BIGINT PRIMARY KEY, g BIGINT);
CREATE MATERIALIZED VIEW v AS
    SELECT g, COUNT(*) AS n, SUM(x) AS x, MAX(x) AS most FROM r JOIN d ON r.a = d.a GROUP BY g;
'''
drawn = random.Random(3)
rows, groups = [], {a: a % 7 for a in range(20)}

def check():
    by_group = {}
    for a, x, s in rows:
        by_group.setdefault(groups[a], []).append(x)
    assert sorted(db.view("v")) == sorted((g, len(xs), sum(xs), max(xs)) for g, xs in by_group.items())
    for g, xs in by_group.items():
        assert db.view("v")[g] == (g, len(xs), sum(xs), max(xs))

def update(count):
    values = drawn.choices([1, 2, 3, 2**56, -(2**56)], k=count)
    new = [(drawn.randrange(20), x, str(drawn.random())) for x in values]
    db.insert("r", new)
    rows.extend(new)
    if len(rows) > 40:
        old = [rows.pop(drawn.randrange(len(rows))) for _ in range(drawn.randrange(1, 20))]
        db.delete("r", old)

def machine_code():
    calls = [call.run for block in db.view("v").state.maintained.blocks for call in block.state.calls]
    return [call.code is not None for call in calls]

db = freshviews.Database()
db.execute(VIEWS)
"""

ANSWER = """
db.insert("d", list(groups.items()))
db.view("v").subscribe(lambda change: None)
update(10)
check()
print("plain" if not any(machine_code()) else "compiled", flush=True)
start = time.monotonic()
while not all(machine_code()) or beside._compiler._ordered:
    update(drawn.randrange(1, 20))
    check()
    assert time.monotonic() - start < 500, "nothing was compiled"
for _ in range(50):
    update(drawn.randrange(1, 20))
    check()
print("compiled" if all(machine_code()) else "plain")
"""

MANY_ROWS = """
db.insert("d", list(groups.items()))
rows += [(drawn.randrange(20), drawn.randrange(9), "") for _ in range(2000)]
db.insert("r", rows)
print("compiled" if any(machine_code()) else "plain")
check()
"""

NO_PROCESS = """
db.insert("d", list(groups.items()))
update(10)
check()
while beside._compiler._ordered:
    beside._compiler._load_compiled()  # The process has ended.
update(10)
check()
print("compiled" if all(machine_code()) else "plain")
"""

INTERRUPTED_WAIT = """
threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    db.insert("d", [(a, a) for a in range(2000)])
except KeyboardInterrupt:
    print("interrupted", db.version, len(db.table("d")))
db.insert("d", list(groups.items()))
update(10)
check()
"""

WAIT_SEEN = """
import logging
logging.basicConfig(level=logging.INFO, filename=sys.argv[1], format="%(name)s %(message)s")

def interrupt():
    while not os.path.getsize(sys.argv[1]):
        time.sleep(0.1)
    time.sleep(1)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    db.insert("d", [(a, a) for a in range(2000)])
except KeyboardInterrupt:
    print("interrupted", file=sys.stderr)
"""

INTERRUPTED = """
db.insert("d", list(groups.items()))
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
start = time.monotonic()
try:
    while time.monotonic() - start < 60:
        update(15)
except KeyboardInterrupt:
    print("interrupted")
rows = [row for row in db.table("r")]
check()
"""

FORKED = """
db.insert("d", list(groups.items()))
assert beside._compiler._ordered
child = os.fork()
if child == 0:
    rows = []
    db = freshviews.Database()
    db.execute(VIEWS)
    db.insert("d", list(groups.items()))
    for _ in range(5):
        update(7)
        check()
    print("child", flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
for _ in range(5):
    update(7)
    check()
print("parent")
"""

ORPHAN = """
import os, subprocess, sys
compiling = "import sys; from freshviews.kernel.machine import compiling; compiling._LONGER = 1; "
compiling += "compiling._found = lambda *order: sum(1 for _ in iter(int, 1)); compiling.serve(int(sys.argv[1]))"
command = [sys.executable, "-c", compiling, str(os.getpid())]
child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
child.stdin.write(b'["order", [0, "module", "name", "w"]]\\n')
child.stdin.flush()
print(child.pid)
"""


REOPENED = """
def opened():
    return freshviews.Database(os.path.join(os.environ["FRESHVIEWS_CACHE_DIR"], "db"))

db = opened()
db.execute(VIEWS)
db.insert("d", list(groups.items()))
update(10)
db.close()
for number in range(2):
    db = opened()
    assert db._taken.rows == 30 + 10 * number
    update(10)
    check()
    db.snapshot()
    db.close()
print(beside.waited())
"""


def _run(program: str, cache: Path, **settings: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "FRESHVIEWS_PURE_PYTHON"}
    environment |= {"FRESHVIEWS_CACHE_DIR": str(cache), "FRESHVIEWS_COMPILE": "beside", **settings}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout


@pytest.mark.full
@pytest.mark.long("compiles all functions of a view, once with nothing in the cache")
def test_a_first_view_answers_before_it_is_compiled(tmp_path: Path) -> None:
    assert _run(PREPARE + ANSWER, tmp_path) == "plain\ncompiled\n"
    # From now on the functions are in the cache, and are loaded when the view is made.
    assert _run(PREPARE + ANSWER, tmp_path).startswith("compiled\n")
    # Functions of a long source are loaded, or compiled beside, from the first batch of their table on.
    long = "import freshviews.codegen.compiled_block as written; written.LONG = 0\n"
    assert _run(long + PREPARE + ANSWER, tmp_path) == "plain\ncompiled\n"


@pytest.mark.full
@pytest.mark.long("compiles all functions of a view")
def test_a_batch_of_many_rows_waits_for_the_compiler(tmp_path: Path) -> None:
    assert _run(PREPARE + MANY_ROWS, tmp_path) == "compiled\n"


@pytest.mark.full
@pytest.mark.large(0)
@pytest.mark.long("compiles all functions of a view twice")
def test_this_process_compiles_if_the_compiling_process_fails(tmp_path: Path) -> None:
    """The process that compiles cannot start, or ends before it has compiled anything."""
    for instead in ("/does/not/exist", "/bin/false"):
        program = f"import sys; sys.executable = {instead!r}\n{PREPARE}" + NO_PROCESS
        assert _run(program, tmp_path / str(len(instead))) == "compiled\n"


def test_ctrl_c_leaves_no_half_written_rows(tmp_path: Path) -> None:
    assert _run(PREPARE + INTERRUPTED, tmp_path) == "interrupted\n"


@pytest.mark.full
@pytest.mark.large(0)
@pytest.mark.long("compiles all functions of a view")
def test_the_setting_freshviews_compile_ahead_compiles_views_before_batches(tmp_path: Path) -> None:
    found = _run(PREPARE + "print(all(machine_code()))", tmp_path, FRESHVIEWS_COMPILE="ahead")
    assert found == "True\n"


def test_ctrl_c_interrupts_a_batch_that_waits_for_the_compiler(tmp_path: Path) -> None:
    assert _run(PREPARE + INTERRUPTED_WAIT, tmp_path) == "interrupted 0 0\n"


def test_a_wait_for_the_compiler_is_reported(tmp_path: Path) -> None:
    """The line counts all functions that are compiled, and vanishes when the wait ends, also by Ctrl-C."""
    log = tmp_path / "log"
    environment = {name: value for name, value in os.environ.items() if name != "FRESHVIEWS_PURE_PYTHON"}
    environment |= {"FRESHVIEWS_CACHE_DIR": str(tmp_path / "cache"), "FRESHVIEWS_COMPILE": "beside"}
    code, written = on_terminal([sys.executable, "-c", PREPARE + WAIT_SEEN, str(log)], environment)
    assert code == 0, written
    *lines, end = written.split("\r\x1b[K")
    assert re.search(r"compiling v: \d+ of \d\d+ functions; once per machine", lines[0]), written
    assert end.strip() == "interrupted"
    assert re.fullmatch(r"freshviews compiling v: \d+ of \d\d+ functions; once per machine\n", log.read_text())


def test_a_forked_child_starts_its_own_compiling_process(tmp_path: Path) -> None:
    assert _run(PREPARE + FORKED, tmp_path) == "child\nparent\n"


def test_a_small_directory_opens_without_a_wait_for_the_compiler(tmp_path: Path) -> None:
    """Its rows are those of the log, then those of a snapshot."""
    assert _run(PREPARE + REOPENED, tmp_path) == "0.0\n"


def test_a_compiling_process_ends_with_its_parent(tmp_path: Path) -> None:
    """Even while it compiles a function without end."""
    compiling, ends = int(_run(ORPHAN, tmp_path)), time.monotonic() + 60
    os.kill(compiling, 0)
    while _lives(compiling):
        assert time.monotonic() < ends, "it goes on"
        time.sleep(0.1)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
