"""``python -m benchmarks.executors``: the work of each executor, of 1, 2, 4 and 8 with one core and one cell each.

All executors run on this machine, so seconds by the clock say nothing. Measured are the rows that each cell applies in
a version, the bytes that its engine has, and the CPU seconds of the processes of its executor: the Python worker, and
the Java process without the threads that compile. ``work`` is the largest executor's share of the CPU seconds of one.

Every version has eight files of each table that grows. Spark reads them, also for one executor, where the worker would
read them by Arrow but for an option. The first versions are small and not measured: Java compiles what runs often.
Results are a file of benchmarks/results/executors; docs/scale.md has the conclusions.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.measuring.machine import ROOT, machine
from benchmarks.pipeline.run import Running, folder, put, session
from benchmarks.pipeline.star import CUSTOMERS, DAYS, PARTS, VIEW
from benchmarks.pipeline.workers import GRAPH, TRIANGLES
from benchmarks.scale import catalog_of, routed
from benchmarks.workloads.tpch_queries import QUERIES
from freshviews import Database
from freshviews.cells import Role, cell_statements, plan_cells

FOLDER = ROOT / "benchmarks" / "results" / "executors"
"""A run adds to the results of its day."""
TPCH = ROOT / "benchmarks" / "data" / "tpch-1"
EXECUTORS = (1, 2, 4, 8)
FILES = 8
"""Files of each growing table in a version: as many as there are executors at most, so that each may read one."""
WARMING, MEASURED = 8, 3
SMALL = 0.02
"""The share of the rows in each version that is not measured."""
COMPILERS = ("C1 CompilerThre", "C2 CompilerThre", "Sweeper thread")

Tables = dict[str, pa.Table]


@dataclass(frozen=True)
class Case:
    """``grows``: the tables with rows in every version; the others come whole with the first."""

    view: str
    tables: Callable[[], Tables]
    grows: tuple[str, ...]
    keys: Mapping[str, str]

    def script(self, tables: Tables, kind: str) -> str:
        """The tables, of a kind, and the view."""
        declared = []
        for name, table in tables.items():
            columns = ", ".join(f"{field.name} {_sql_type(field.type)}" for field in table.schema)
            key = f", PRIMARY KEY ({self.keys[name]})" if name in self.keys else ""
            limit = f", maxFilesPerTrigger '{FILES}'" if name in self.grows else ""
            using = f" USING parquet OPTIONS (path '{name}', mergeSchema 'false'{limit})" if kind else ""
            declared.append(f"CREATE {kind} TABLE {name} ({columns}{key}){using};")
        return "\n".join(declared) + f"\nCREATE MATERIALIZED VIEW seen AS {self.view};"


def _star(rows: int = 6_000_000) -> Tables:
    random = np.random.default_rng(1)
    return {
        "customers": pa.table({"cust": np.arange(CUSTOMERS), "region": random.integers(0, 25, CUSTOMERS)}),
        "parts": pa.table({"part": np.arange(PARTS), "kind": random.integers(0, 20, PARTS)}),
        "dates": pa.table({"day": np.arange(DAYS), "month": np.arange(DAYS) // 61}),
        "sales": pa.table(
            {
                "cust": random.integers(0, CUSTOMERS, rows),
                "part": random.integers(0, PARTS, rows),
                "day": random.integers(0, DAYS, rows),
                "qty": random.integers(1, 50, rows),
                "price": random.integers(1, 10_000, rows),
            }
        ),
    }


def _sales() -> Tables:
    return {"sales": _star()["sales"]}


def _graph(nodes: int = 1_500, edges: int = 600_000) -> Tables:
    random = np.random.default_rng(1)
    found = {}
    for name, columns in GRAPH.items():
        pairs = random.choice(nodes * nodes, edges, replace=False)
        found[name] = pa.table(dict(zip(columns, (pairs // nodes, pairs % nodes), strict=True)))
    return found


def _tpch(query: str) -> Callable[[], Tables]:
    """The columns of the tables of scale factor 1 that a query reads."""

    def tables() -> Tables:
        if not TPCH.exists():
            command = [Path(sys.executable).parent / "tpchgen-cli", "parquet", "-s", "1", f"--output-dir={TPCH}"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        names, view = QUERIES[query]
        found = {}
        for name in names.split():
            file = TPCH / f"{name}.parquet"
            columns = [column for column in pq.read_schema(file).names if column in view]
            rows = pq.read_table(file, columns=columns)
            plain = [f.with_type(pa.string()) if pa.types.is_string_view(f.type) else f for f in rows.schema]
            found[name] = rows.cast(pa.schema(plain))
        return found

    return tables


CASES = {
    "star": Case(VIEW, _star, ("sales",), {"customers": "cust", "parts": "part", "dates": "day"}),
    "group": Case(
        "SELECT cust, SUM(qty) AS qty, SUM(price) AS price, COUNT(*) AS n FROM sales GROUP BY cust",
        _sales,
        ("sales",),
        {},
    ),
    "q3": Case(QUERIES["q3"][1], _tpch("q3"), ("orders", "lineitem"), {}),
    "q9": Case(QUERIES["q9"][1], _tpch("q9"), ("orders", "lineitem"), {}),
    "triangles": Case(TRIANGLES, _graph, tuple(GRAPH), {}),
}


def _sql_type(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    named = {"int64": "BIGINT", "int32": "INT", "date32[day]": "DATE"}
    return named.get(str(kind), "STRING")


def _range(rows: int, version: int, grows: bool) -> tuple[int, int]:
    """The first of a table's rows that come with a version, and their number."""
    if not grows:
        return 0, 0 if version else rows
    small = round(rows * SMALL)
    large = (rows - small * WARMING) // MEASURED
    if version < WARMING:
        return version * small, small
    return WARMING * small + (version - WARMING) * large, large


def _write(case: Case, place: Path) -> Path:
    """Write the files and the script; return the script."""
    tables = case.tables()
    for name, table in tables.items():
        grows = name in case.grows
        for version in range(WARMING + MEASURED if grows else 1):
            first, size = _range(table.num_rows, version, grows)
            count = FILES if grows else 1
            each = -(-size // count)
            for number in range(count):
                rows = table.slice(first + number * each, min(each, size - number * each))
                put(rows, place / name / f"{version:02d}-{number}.parquet")
    script = place / "case.sql"
    script.write_text(case.script(tables, "STREAMING"))
    return script


def measure(name: str, executors: int, heap: int) -> dict[str, Any]:
    """The work of the executors in the measured versions of a case."""
    case = CASES[name]
    with folder() as place, session(f"local-cluster[{executors},1,{heap}]") as spark:
        script = _write(case, place)
        applied: Counter[str] = Counter()
        seen: list[dict[str, Any]] = []

        def look(manifest: Any) -> None:
            if manifest.batch >= WARMING - 1:
                seen.append(_processes())
                if manifest.batch >= WARMING:
                    applied.update(_applied(manifest))

        running = _Watched(spark, script, executors, look)
        running.query.awaitTermination()
        last = running.versions[-1].manifest
        time.sleep(1)
        memory = _processes()
    begun, ended = seen[0], seen[-1]
    work = [
        {kind: ended["cpu"][executor][kind] - begun["cpu"][executor][kind] for kind in ended["cpu"][executor]}
        for executor in sorted(ended["cpu"])
    ]
    return {
        "case": name,
        "executors": executors,
        "engine": False,
        "versions": len(seen) - 1,
        "rows": [applied[str(cell)] for cell in range(executors)],
        "bytes": [sum(last.sizes.get(str(cell), {}).values()) for cell in range(executors)],
        "merge_bytes": sum(last.sizes.get("merge", {}).values()),
        "cpu": work,
        "driver_cpu": ended["driver"] - begun["driver"],
        "workers_bytes": memory["workers"],
        "java_bytes": memory["java"],
        "loaded": [version.manifest.cells_loaded for version in running.versions],
        "moved": [version.manifest.cells_moved for version in running.versions],
    }


class _Watched(Running):
    """A pipeline over the present files, with a function that gets each version when it is delivered."""

    def __init__(self, spark: Any, script: Path, cells: int, look: Callable[[Any], None]) -> None:
        self._look = look
        super().__init__(spark, script, cells, once=True)

    def _delivered(self, manifest: Any) -> None:
        super()._delivered(manifest)
        self._look(manifest)


def _applied(manifest: Any) -> dict[str, int]:
    """Rows that each cell has logged in the version."""
    found = {}
    for number, entry in manifest.cells.items():
        last = entry["log"][-1] if entry["log"] else {"token": "", "rows": 0}
        found[number] = last["rows"] if last["token"] == entry["token"] else 0
    return found


def _processes() -> dict[str, Any]:
    """CPU seconds so far by executor, and bytes of the Python workers and of Java."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents.setdefault(int(path.read_text().rpartition(")")[2].split()[1]), []).append(int(path.parent.name))
        except OSError:
            continue
    cpu: dict[int, dict[str, float]] = {}
    workers, java = [], []
    found = list(parents.get(os.getpid(), []))
    for one in found:
        found += parents.get(one, [])
    for one in found:
        if "CoarseGrainedExecutorBackend" not in _text(one, "cmdline"):
            continue
        below = list(parents.get(one, []))
        for child in below:
            below += parents.get(child, [])
        compilers = sum(
            _seconds(f"{one}/task/{thread}")
            for thread in os.listdir(f"/proc/{one}/task")
            if _text(one, f"task/{thread}/comm").strip() in COMPILERS
        )
        own = sum(map(_seconds, map(str, below)))
        cpu[one] = {"python": own, "java": _seconds(str(one)) - compilers, "compilers": compilers}
        workers.append([_memory(child) for child in below])
        java.append(_memory(one))
    return {"cpu": cpu, "driver": _seconds(str(os.getpid())), "workers": workers, "java": java}


def _text(process: int, name: str) -> str:
    try:
        return Path(f"/proc/{process}/{name}").read_text()
    except OSError:
        return ""


def _seconds(path: str) -> float:
    """CPU seconds of a process, with those of its children that have ended; or of a thread."""
    try:
        fields = Path(f"/proc/{path}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    ended = 0 if "/task/" in path else int(fields[13]) + int(fields[14])
    return (int(fields[11]) + int(fields[12]) + ended) / os.sysconf("SC_CLK_TCK")


def _memory(process: int) -> int:
    """Bytes of memory of a process; each process that shares a page has its part of it."""
    lines = _text(process, "smaps_rollup").splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def _places(role: Role, rows: pa.Table) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """As ``scale.routed``, for the columns of a table that split it."""
    keys = [dim.column for dim in role.dims if dim.column is not None]
    columns = {key: rows.column(key).to_numpy().astype(np.int64) for key in keys}
    return list(routed(role, columns or {"": np.zeros(rows.num_rows, np.int64)}))


def measure_engine(name: str, cells: int) -> dict[str, Any]:
    """The same versions through the engine of the largest cell, in this process."""
    case = CASES[name]
    tables = case.tables()
    catalog = catalog_of(case.script(tables, ""))
    plan = plan_cells(catalog, cells, {table: float(rows.num_rows) for table, rows in tables.items()})
    places = {role.name: _places(role, tables[role.table]) for role in plan.roles}
    largest = int(np.argmax(sum(np.bincount(at, minlength=cells) for found in places.values() for _, at in found)))
    parts = {
        name: np.sort(np.concatenate([rows[at == largest] for rows, at in found])) for name, found in places.items()
    }
    with Database(threads=1) as db:
        db.define(cell_statements(plan, catalog, largest))
        for view in db.views:
            db.view(view).subscribe(lambda change: change.to_arrow())
        seconds, applied = 0.0, 0
        for version in range(WARMING + MEASURED):
            batches = []
            for role in plan.roles:
                first, size = _range(tables[role.table].num_rows, version, role.table in case.grows)
                low, high = np.searchsorted(parts[role.name], [first, first + size])
                batches.append((role.name, tables[role.table].take(parts[role.name][low:high]).combine_chunks()))
            start = time.process_time()
            with db.batch() as batch:
                for role_name, rows in batches:
                    if rows.num_rows:
                        batch.insert(role_name, rows)
            if version >= WARMING:
                seconds += time.process_time() - start
                applied += sum(rows.num_rows for _, rows in batches)
        held = db.stats()["bytes"]
    cpu = [{"python": seconds}]
    return {"case": name, "executors": cells, "engine": True, "rows": [applied], "bytes": [held], "cpu": cpu}


def lines(found: list[dict[str, Any]]) -> list[str]:
    """The table of a case: of each number of executors the largest executor, and its share of one executor."""
    one = next((each for each in found if each["executors"] == 1), found[0])
    kinds = {"engine": ("python",)} if one["engine"] else {"worker": ("python",), "worker and Java": ("python", "java")}
    names = ["executors", "rows", "of one", "bytes", "of one"]
    names += [name for kind in kinds for name in (f"CPU s of the {kind}", "of one")]
    shown = [f"| {' | '.join([*names, 'allowed'])} |", f"|{' ---: |' * (len(names) + 1)}"]

    def most(each: dict[str, Any], kind: tuple[str, ...]) -> float:
        return max(sum(work[part] for part in kind) for work in each["cpu"])

    for each in found:
        cells = [f"{each['executors']}", f"{max(each['rows']):,}", f"{max(each['rows']) / max(one['rows']):.3f}"]
        cells += [f"{max(each['bytes']) / 1e6:,.0f} MB", f"{max(each['bytes']) / max(one['bytes']):.3f}"]
        for kind in kinds.values():
            cells += [f"{most(each, kind):.2f}", f"{most(each, kind) / most(one, kind):.3f}"]
        cells.append(f"{1.15 / each['executors']:.3f}")
        shown.append(f"| {' | '.join(cells)} |")
    return shown


def main() -> None:
    """Measure each case in a process of its own; print a table per case, and write the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.executors", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--executors", type=int, nargs="+", default=EXECUTORS)
    parser.add_argument("--heap", type=int, default=1024, help="MB of an executor's heap")
    parser.add_argument("--engines", action="store_true", help="only the engine of the largest cell, without Spark")
    parser.add_argument("--one", action="store_true", help="measure the one case here, and print JSON")
    asked = parser.parse_args()
    if asked.one and asked.engines:
        print(json.dumps(measure_engine(asked.only[0], asked.executors[0])))
        return
    if asked.one:
        print(json.dumps(measure(asked.only[0], asked.executors[0], asked.heap)))
        return
    path = FOLDER / f"{dt.date.today().isoformat()}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    measured: list[dict[str, Any]] = json.loads(path.read_text())["measured"] if path.exists() else []
    more = ["--engines"] if asked.engines else []
    for executors, name in product(asked.executors, asked.only):
        command = [sys.executable, "-m", "benchmarks.executors", "--one", "--only", name, *more]
        command += ["--executors", str(executors), "--heap", str(asked.heap)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(done.stderr)
        made = json.loads(done.stdout.splitlines()[-1])
        measured = [one for one in measured if _key(one) != _key(made)] + [made]
        path.write_text(json.dumps({"machine": machine(), "measured": measured}, indent=1) + "\n")
    for name in asked.only:
        found = [one for one in measured if one["case"] == name and one["engine"] == asked.engines]
        print(f"\n{name}\n\n" + "\n".join(lines(sorted(found, key=lambda one: one["executors"]))), flush=True)
    print(f"\nwritten to {path}")


def _key(one: dict[str, Any]) -> tuple[Any, ...]:
    return one["case"], one["executors"], one["engine"]


if __name__ == "__main__":
    main()
