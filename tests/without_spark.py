"""``make without-spark``: in an environment without pyspark, everything works that does not need Spark.

Run by the Python of that environment, with only pip's installed packages on its path.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = """
CREATE STREAMING TABLE sales (part STRING, qty INT) USING csv OPTIONS (path 'in', header 'true', changes 'op');
CREATE MATERIALIZED VIEW by_part AS SELECT part, SUM(qty) AS qty FROM sales GROUP BY part;
"""


def command(folder: str, *words: str) -> subprocess.CompletedProcess[str]:
    freshviews = str(Path(sys.executable).with_name("freshviews"))
    return subprocess.run([freshviews, *words], cwd=folder, capture_output=True, text=True, timeout=300)


def main() -> None:
    assert importlib.util.find_spec("pyspark") is None, "pyspark is installed here"
    import freshviews as fv
    import freshviews.spark

    db = fv.Database()
    db.execute("CREATE TABLE sales (part STRING, qty INT)")
    db.execute("CREATE MATERIALIZED VIEW by_part AS SELECT part, SUM(qty) AS qty FROM sales GROUP BY part")
    db.insert("sales", [("bolt", 2), ("bolt", 3)])
    assert db.view("by_part").to_arrow().to_pylist() == [{"part": "bolt", "qty": 5}]
    try:
        db.execute("CREATE MATERIALIZED VIEW n AS SELECT qty FROM sales WHERE part = 'bolt")
    except fv.SqlError as error:
        assert str(error) == "line 1, column 66: Missing ' to close what begins here", error
    else:
        raise AssertionError("an open quote is accepted")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "in").mkdir()
        (Path(folder) / "sales.sql").write_text(SCRIPT)
        for words in (("check", "sales.sql"), ("explain", "sales.sql"), ("--help",)):
            done = command(folder, *words)
            assert done.returncode == 0, (words, done.stderr)
        done = command(folder, "run", "sales.sql")
        assert done.returncode == 1 and "pip install 'freshviews[spark]'" in done.stderr, done.stderr
    from sqlglot.parsers import spark

    compiled = " beside a compiled sqlglot" if not str(spark.__file__).endswith(".py") else ""
    print(f"the package does without pyspark what needs none{compiled}")


if __name__ == "__main__":
    main()
