"""The notebooks of docs/notebooks run from top to bottom, and are stored with the outputs of such a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))
SMALL = {"retail": {"RETAIL_ROWS": "8000"}}
"""The variables that make a notebook small, by its name."""

Notebook = dict[str, Any]


def code_of(notebook: Notebook) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def run(text: str, folder: Path) -> Notebook:
    """The notebook with the outputs of a run. Raises CellExecutionError with the error of a cell."""
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed; pip install 'freshviews[notebook]'")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed; pip install 'freshviews[notebook]'")
    made = nbformat.reads(text, as_version=4)
    client = nbclient.NotebookClient(made, timeout=600, resources={"metadata": {"path": str(folder)}})
    found: Notebook = client.execute()
    return found


def names() -> list[str]:
    return [path.stem for path in NOTEBOOKS]


def path_of(name: str) -> Path:
    return next(path for path in NOTEBOOKS if path.stem == name)


@pytest.mark.parametrize("name", names())
def test_a_notebook_runs_from_top_to_bottom(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A line for each wait for the compiler would be an output.
    for variable, value in (SMALL[name] | {"FRESHVIEWS_PROGRESS": "0"}).items():
        monkeypatch.setenv(variable, value)
    stored = json.loads(path_of(name).read_text())
    found = run(path_of(name).read_text(), tmp_path)
    kinds = [
        [[output["output_type"] for output in cell["outputs"]] for cell in code_of(one)] for one in (stored, found)
    ]
    assert kinds[0] == kinds[1]


def test_a_notebook_cell_that_fails_is_noticed(tmp_path: Path) -> None:
    text = path_of("retail").read_text()
    stored = json.loads(text)
    stored["cells"] = [{**code_of(stored)[0], "source": "assert 1 == 2"}]
    with pytest.raises(Exception, match="AssertionError"):
        run(json.dumps(stored), tmp_path)


@pytest.mark.parametrize("name", names())
def test_a_notebook_is_stored_with_the_outputs_of_a_run(name: str) -> None:
    stored = json.loads(path_of(name).read_text())
    cells = code_of(stored)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not any(output["output_type"] in ("error", "stream") for output in outputs)
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert stored["cells"][0]["source"][0].startswith("# ")
