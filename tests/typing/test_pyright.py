"""pyright, in strict mode, accepts an example of every public call, and refuses what mypy refuses."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.plain_python(only=True)

HERE = Path(__file__).parent


def complaints(*files: Path) -> list[str]:
    """The complaints of pyright about files."""
    pytest.importorskip("pyright")
    if shutil.which("node") is None:
        pytest.skip("pyright needs node")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, *map(str, files)]
    done = subprocess.run(command, cwd=HERE.parents[1], capture_output=True, text=True, timeout=300)
    if not done.stdout.startswith("{"):
        pytest.skip(f"pyright does not start: {done.stderr[-300:]}")
    found: list[dict[str, Any]] = json.loads(done.stdout)["generalDiagnostics"]
    return [f"{Path(one['file']).name}:{one['range']['start']['line'] + 1}: {one['message']}" for one in found]


def test_strict_pyright_accepts_every_public_call() -> None:
    assert not complaints(HERE / "examples.py", HERE / "arrow_examples.py")


def test_pyright_refuses_wrong_rows(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import freshviews as fv\n\nfv.Database().insert('t', 5)\n")
    (said,) = complaints(wrong)
    assert said.startswith("wrong.py:3: Argument of type") and '"rows" of type "Rows"' in said


def test_the_examples_call_every_public_method() -> None:
    import freshviews as fv

    text = "".join((HERE / name).read_text() for name in ("examples.py", "arrow_examples.py", "test_calls.py"))
    kinds = (fv.Database, fv.Batch, fv.View, fv.Table, fv.Change, fv.Changes, fv.Subscription, fv.Explanation, fv.Stats)
    names = {name for kind in kinds for name in vars(kind) if not name.startswith("_") and not hasattr(dict, name)}
    missing = sorted(name for name in names if f".{name}" not in text and name not in NOT_FOR_USERS)
    assert not missing, f"tests/typing/examples.py calls none of {missing}"


NOT_FOR_USERS = {"state", "define", "from_image"}
"""Used by the pipeline."""
