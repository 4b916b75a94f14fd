"""The programs of docs/connect.md run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "connect.md"

pytestmark = pytest.mark.plain_python(only=True)


def test_the_programs_on_the_connect_page_run_in_order() -> None:
    for name in ("grpc", "duckdb", "sqlalchemy", "adbc_driver_manager", "adbc_driver_flightsql", "polars"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    from sqlalchemy.dialects import registry

    # An installed freshviews has this as an entry point.
    registry.register("freshviews", "freshviews.dbapi.dialect", "FreshviewsDialect")
    programs = re.findall(r"^```python\n((?!>>>).*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(programs) == 2
    names: dict[str, object] = {}
    for program in programs:
        exec(compile(program, "docs/connect.md", "exec"), names)
