"""Compiled peers: C++ by g++, crates by cargo, each from its sources in benchmarks/peers.

``python -m benchmarks install`` builds them below the folder of ``environments``, outside the sources.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measuring.environments import FOLDER
from benchmarks.measuring.machine import ROOT

SOURCES = ROOT / "benchmarks" / "peers"


@dataclass(frozen=True)
class Built:
    """A program: the folders of its sources below ``SOURCES``, the tool that builds it, and the crate it measures.

    The tool runs in the first folder.
    """

    sources: tuple[str, ...]
    tool: str
    crate: str = ""


BUILT = {
    "cpp": Built(("cpp",), "g++"),
    "differential": Built(("rust/differential", "rust/stream"), "cargo", "differential-dataflow"),
    "dbsp": Built(("rust/dbsp", "rust/stream"), "cargo", "dbsp"),
}
"""By the name that ``install`` accepts."""


def missing(name: str) -> str | None:
    """The reason for which a program cannot run, with the remedy; None if it can."""
    if path_of(name).exists():
        return None
    tool = BUILT[name].tool
    if shutil.which(tool) is None:
        return f"not built: there is no {tool} on PATH"
    return f"not built: python -m benchmarks install {name}"


def path_of(name: str) -> Path:
    """The path of the program, whether it exists or not. It has a digest of the sources, so other sources are built
    again."""
    digest = hashlib.sha256()
    for file in _files(name):
        digest.update(file.read_bytes())
    return FOLDER / name / f"program-{digest.hexdigest()[:16]}"


def version_of(name: str) -> str:
    """The version of the crate in Cargo.lock, or of the compiler; "missing" if the program was not built.

    It is "unknown" if the compiler was removed since.
    """
    built = BUILT[name]
    if missing(name) is not None:
        return "missing"
    if built.crate:
        lines = (SOURCES / built.sources[0] / "Cargo.lock").read_text().splitlines()
        return lines[lines.index(f'name = "{built.crate}"') + 1].split('"')[1]
    if shutil.which(built.tool) is None:
        return "unknown"
    command = [built.tool, "-dumpfullversion"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def versions() -> dict[str, str]:
    """Versions of the compiled peers, by name."""
    return {name: version_of(name) for name in BUILT}


def build(name: str) -> bool:
    """Build a program if it is missing, with the compiler's output; True if it can run."""
    built, program = BUILT[name], path_of(name)
    if program.exists():
        print(f"{name}: ready")
        return True
    if shutil.which(built.tool) is None:
        print(f"{name}: there is no {built.tool} on PATH; it will be reported as missing", flush=True)
        return False
    program.parent.mkdir(parents=True, exist_ok=True)
    print(f"{name}: building in {program.parent}", flush=True)
    command, made = _command(name, program)
    variables = {**os.environ, "CARGO_TARGET_DIR": str(program.parent / "target")}
    variables["RUSTFLAGS"] = "-C target-cpu=native"
    if subprocess.run(command, cwd=SOURCES / built.sources[0], env=variables).returncode:
        print(f"{name}: could not be built; it will be reported as missing", flush=True)
        return False
    # Renamed when complete: a program that exists can run.
    shutil.copy2(made, program.with_suffix(".new"))
    program.with_suffix(".new").rename(program)
    return True


def _command(name: str, program: Path) -> tuple[Sequence[str | Path], Path]:
    """The command that builds a program, and the file that it writes."""
    if BUILT[name].tool == "g++":
        made = program.with_suffix(".made")
        sources = [file for file in _files(name) if file.suffix == ".cpp"]
        return ["g++", "-std=c++17", "-O3", "-march=native", "-Wall", "-Wextra", "-o", made, *sources], made
    command = ["cargo", "build", "--release", "--locked", "-j1"]
    return command, program.parent / "target" / "release" / f"{name}-peer"


def _files(name: str) -> list[Path]:
    """The sources of a program; the build depends on them alone."""
    ends = (".cpp", ".hpp", ".rs", ".toml", ".lock")
    folders = [SOURCES / folder for folder in BUILT[name].sources]
    files = (sorted((*folder.glob("*"), *folder.glob("src/*"))) for folder in folders)
    return [file for found in files for file in found if file.suffix in ends]
