"""``make dist``: builds wheel and source distribution, checks them, and installs both in environments of their own.

Run by a Python with ``build`` and ``twine``. Each of Python 3.11, 3.12 and 3.13 that is found gets the wheel, the first
of them also the source distribution; there the package works without pyspark, and ``freshviews doctor`` finds no fault.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
_RELATIVE = re.compile(r"\]\((?!https?://|#)[^)]*\)")


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run([str(one) for one in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr)
        sys.exit(f"{' '.join(map(str, command))} failed with exit code {done.returncode}")
    return done.stdout


def found() -> dict[str, Path]:
    """The Pythons that are here, by version, which can make environments."""
    here: dict[str, Path] = {}
    question = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    for version in PYTHONS:
        of_pyenv = Path.home().glob(f".pyenv/versions/{version}.*/bin/python")
        for name in (f"python{version}", *map(str, of_pyenv)):
            path = shutil.which(name)
            if path is None:
                continue
            done = subprocess.run([path, "-c", question], capture_output=True, text=True)
            if done.stdout.strip() == version:
                here.setdefault(version, Path(path))
    return here


def check_wheel(wheel: Path) -> None:
    """The wheel has the package alone, typed, and metadata that a page of the package index can show."""
    with zipfile.ZipFile(wheel) as files:
        names = files.namelist()
        metadata = Parser().parsestr(files.read(next(n for n in names if n.endswith(".dist-info/METADATA"))).decode())
    assert "freshviews/py.typed" in names
    assert {name.split("/")[0] for name in names} == {"freshviews", f"freshviews-{metadata['Version']}.dist-info"}
    extras = set(metadata.get_all("Provides-Extra") or [])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert extras == set(project["optional-dependencies"]), extras
    for field in ("Author", "Keywords", "Classifier", "License-Expression", "Requires-Python", "Summary"):
        assert metadata[field], field
    links = _RELATIVE.findall(str(metadata.get_payload()))
    assert not links, f"links that work in a checkout alone: {links}"


def check_source(source: Path) -> None:
    """The source distribution has the documentation and what builds the package."""
    with tarfile.open(source) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    wanted = {"docs/README.md", "docs/sql.md", "docs/changes-to-views.svg", "README.md", "CHANGELOG.md", "LICENSE",
              "pyproject.toml", "demo/flights.sql", "src/freshviews/py.typed"}  # fmt: skip
    pages = {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")}
    missing = (wanted | pages) - names
    assert not missing, f"the source distribution lacks {sorted(missing)}"


def try_out(python: Path, package: Path, folder: Path, slim: bool) -> None:
    """Install a package in a new environment, and use it there. ``slim``: once more without what docs/dependencies.md
    says an image can do without."""
    run(python, "-m", "venv", "--clear", folder)
    inside = folder / "bin" / "python"
    run(inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package)
    run(inside, "-I", ROOT / "tests" / "without_spark.py", cwd=folder)
    run(inside, "-I", "-m", "freshviews", "doctor", cwd=folder)
    print(f"{package.name} works in {run(inside, '--version').strip()}")
    if slim:
        page = (ROOT / "docs" / "dependencies.md").read_text()
        (unneeded,) = re.findall(r"^rm -r (.*)$", page, re.MULTILINE)
        (packages,) = folder.glob("lib/python*/site-packages")
        run("bash", "-ec", f"rm -r {unneeded}", cwd=packages)
        run(inside, "-I", ROOT / "tests" / "without_spark.py", cwd=folder)
        print("and without what an image does not need")
    shutil.rmtree(folder)


def main() -> None:
    out = ROOT / "dist"
    shutil.rmtree(out, ignore_errors=True)
    shutil.rmtree(ROOT / "build", ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", out)
    wheel, source = next(out.glob("*.whl")), next(out.glob("*.tar.gz"))
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, source)
    check_wheel(wheel)
    check_source(source)
    print(f"{wheel.name} and {source.name} are complete")
    pythons = found()
    with tempfile.TemporaryDirectory(prefix="freshviews-") as folder:
        for number, python in enumerate(pythons.values()):
            for package in (wheel, source)[: 2 if number == 0 else 1]:
                try_out(python, package, Path(folder) / "venv", number == 0 and package is wheel)
    lacking = [version for version in PYTHONS if version not in pythons]
    if lacking:
        print(f"not tried, as they are not here: Python {', '.join(lacking)}")


if __name__ == "__main__":
    main()
