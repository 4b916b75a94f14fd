"""A venv for each peer whose packages conflict with ours, from benchmarks/requirements-<name>.txt.

``python -m benchmarks install`` creates them below .venv/peers, or in the folder BENCHMARK_ENVIRONMENTS.
"""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

from benchmarks.measuring.machine import ROOT

NAMES = ("pathway", "flink")
PACKAGES = {"pathway": "pathway", "flink": "apache-flink"}
FOLDER = Path(os.environ.get("BENCHMARK_ENVIRONMENTS", ROOT / ".venv" / "peers"))


def python_of(name: str) -> Path | None:
    """The interpreter of an environment; None if its installation is incomplete."""
    python = FOLDER / name / "bin" / "python"
    return python if (FOLDER / name / "ready").exists() else None


@cache
def version_in(name: str) -> str:
    """The version of the peer in its environment; "missing" if there is none."""
    python = python_of(name)
    if python is None:
        return "missing"
    ask = f"from importlib.metadata import version; print(version({PACKAGES[name]!r}))"
    return subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()


def versions() -> dict[str, str]:
    """Versions of the peers that have environments of their own, by name."""
    return {name: version_in(name) for name in NAMES}


def install(names: tuple[str, ...] = NAMES) -> bool:
    """Create missing environments, with pip's output; True if all could be created."""
    whole = True
    for name in names:
        if python_of(name) is not None:
            print(f"{name}: ready")
            continue
        folder = FOLDER / name
        print(f"{name}: installing into {folder}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        requirements = ROOT / "benchmarks" / f"requirements-{name}.txt"
        pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run([*pip, "--requirement", requirements])
        if done.returncode:
            print(f"{name}: could not be installed; it will be reported as missing", flush=True)
            whole = False
        else:
            (folder / "ready").touch()
    return whole
