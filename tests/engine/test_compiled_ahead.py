"""Functions of a commit are compiled when tables and views are created and subscribed to, not in the first commit."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import gc
from freshviews.kernel.machine.functions import Function
import freshviews

db = freshviews.Database()
db.execute('''
CREATE TABLE r (a BIGINT, b BIGINT);
CREATE TABLE s (b BIGINT, c BIGINT);
CREATE TABLE t (c BIGINT, a BIGINT);
CREATE TABLE parent (a BIGINT PRIMARY KEY);
CREATE TABLE child (x BIGINT PRIMARY KEY, a BIGINT REFERENCES parent (a));
CREATE MATERIALIZED VIEW traced TBLPROPERTIES ('freshviews.strategy' = 'incremental_trie_join')
    AS SELECT COUNT(*) AS n FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c AND r.a = t.a;
CREATE MATERIALIZED VIEW evaluated TBLPROPERTIES ('freshviews.strategy' = 'trie_join')
    AS SELECT COUNT(*) AS n FROM r JOIN s ON r.b = s.b JOIN t ON s.c = t.c AND r.a = t.a;
CREATE MATERIALIZED VIEW grouped AS SELECT a, COUNT(*) + 1 AS n FROM r GROUP BY a;
CREATE MATERIALIZED VIEW above AS SELECT COUNT(n) AS n FROM grouped;
CREATE MATERIALIZED VIEW without AS SELECT a FROM r EXCEPT SELECT b FROM s;
''')
for view in db.views:
    db.view(view).subscribe(lambda change: None)

def compiled():
    return {one.__qualname__ for one in gc.get_objects() if isinstance(one, Function) and one.made}

before = compiled()
for name in ("r", "s", "t"):
    db.insert(name, [(1, 1), (1, 2)])
with db.batch() as batch:
    batch.insert("parent", [(1,)])
    batch.insert("child", [(1, 1)])
db.delete("r", [(1, 2)])
try:
    db.delete("parent", [(1,)])
except freshviews.BatchError:
    pass
print(*sorted(compiled() - before), list(db.view("traced")), list(db.view("without")))
"""


def test_no_commit_compiles_a_function() -> None:
    """The first batch of a view by trace took a minute on a new machine."""
    environment = {name: value for name, value in os.environ.items() if name != "FRESHVIEWS_PURE_PYTHON"}
    command = [sys.executable, "-c", PROGRAM]
    found = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert found.stdout == "[(1,)] []\n"
