"""A notebook and a script take frames, show tables as HTML, and print short tracebacks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.plain_python(only=True)

ROOT = Path(__file__).parents[2]
CELLS = [
    "import freshviews as fv, pandas as pd\n"
    "db = fv.Database()\n"
    "db.create_table('items', pd.DataFrame({'id': [1, 2], 'part': ['bolt', 'nut'], 'qty': [3, 5]}), key='id')\n"
    "db.execute('CREATE MATERIALIZED VIEW by_part AS SELECT part, SUM(qty) AS qty FROM items GROUP BY part')\n"
    "view = db.view('by_part')",
    "view",
    "db",
    "changes = view.changes('now')\ndb.upsert('items', {'id': 2, 'part': 'nut', 'qty': 6})\nchanges.take(0)",
    "db.sql('SELECT part FROM by_part WHERE qty > ?', [4]).to_pandas()",
    "view.explain()",
    "db.stats()",
    "db.execute('CREATE MATERIALIZED VIEW wrong AS SELECT prat FROM items')",
    "import itertools, os, signal, threading\n"
    "interrupt = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))\n"
    "interrupt.start()\n"
    "db.insert('items', ((i, 'bolt', 1) for i in itertools.count(3)))",
    "db.version, len(db.table('items')), view['bolt'], db.insert('items', [(3, 'bolt', 1)])",
]
WRONG, ENDLESS = 7, 8
"""Cells that end by an error: the second by what an interrupt of the kernel sends to it."""


@pytest.fixture(scope="module")
def outputs() -> list[Any]:
    """The output of each cell."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(notebook, timeout=120, allow_errors=True, kernel_name="python3").execute()
    return [cell.outputs[-1] if cell.outputs else None for cell in notebook.cells]


def test_a_notebook_shows_every_kind_of_object(outputs: list[Any]) -> None:
    assert outputs[0] is None
    html = [one["data"]["text/html"] for one in outputs[1:7]]
    assert "<table" in html[0] and "view by_part at version 1: 2 rows" in html[0] and "BIGINT" in html[0]
    assert "items" in html[1] and "by_part" in html[1]
    assert "change of view by_part at version 2: 2 rows" in html[2]
    assert "nut" in html[3] and "bolt" not in html[3]
    assert "q-hierarchical" in html[4] and "O(1)" in html[4]
    assert "by_part" in html[5] and "rows" in html[5]


def test_a_traceback_in_a_notebook_shows_the_place_in_the_sql(outputs: list[Any]) -> None:
    error = outputs[WRONG]
    assert (error["output_type"], error["ename"]) == ("error", "SqlError")
    assert error["evalue"] == "line 1, column 42: unknown column prat; did you mean part?"
    printed = "\n".join(error["traceback"])
    assert "site-packages" not in printed and "src/freshviews" not in printed and len(printed.splitlines()) < 10


def test_an_interrupt_of_the_kernel_stops_an_insert_and_applies_none_of_its_rows(outputs: list[Any]) -> None:
    assert outputs[ENDLESS]["output_type"] == "error" and outputs[ENDLESS]["ename"] == "KeyboardInterrupt"
    assert outputs[ENDLESS + 1]["data"]["text/plain"] == "(2, 2, ('bolt', 3), 3)"


def test_a_traceback_in_a_script_shows_the_line_of_the_call(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import freshviews as fv\n\nfv.Database().execute('CREATE TABLE t (a INTT)')\n")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    lines = done.stderr.splitlines()
    assert len(lines) == 4 and f'"{script}", line 3' in lines[1] and "line 1, column 19" in lines[3]
