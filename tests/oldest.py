"""The oldest versions of dependencies that pyproject.toml admits, as constraints of pip: ``make oldest``."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path


def oldest(requirements: list[str]) -> list[str]:
    """``name==version`` for each ``name>=version``."""
    found = [re.match(r"([\w-]+)>=([\w.]+)", one) for one in requirements]
    return [f"{one[1]}=={one[2]}" for one in found if one is not None]


if __name__ == "__main__":
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    print("\n".join(oldest(project["dependencies"])))
