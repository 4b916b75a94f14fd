"""Collects the definitions in the files of a project: tables, views, sinks, and the queries that write into them.

Python files are run as Spark runs them. SQL files are read as text.
"""

from __future__ import annotations

import contextlib
import importlib.util
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark.pipelines.flow import Flow
from pyspark.pipelines.graph_element_registry import GraphElementRegistry, graph_element_registration_context
from pyspark.pipelines.output import Output
from pyspark.sql import DataFrame

from freshviews.errors import short
from freshviews.records import dataclass
from freshviews.spark.declarative.recording import (
    Recorded,
    UsedTooEarly,
    described,
    query_of,
    reads_from_outside,
    replayed,
    select_of,
    standing_in,
)
from freshviews.spark.declarative.spec import ProjectError, ProjectSpec
from freshviews.spark.io.java_errors import cause
from freshviews.spark.session import SPARK_ERRORS


@dataclass(frozen=True)
class PythonFlow:
    """A flow of a Python file: the SQL of its query, or a DataFrame whose rows come from outside of the project."""

    flow: Flow
    sql: str | None
    frame: DataFrame | None


class Definitions(GraphElementRegistry):
    """Outputs and flows of Python files, and the text of SQL files by their names."""

    def __init__(self, session: Any, folder: Path) -> None:
        self.outputs: list[Output] = []
        self.flows: list[PythonFlow] = []
        self.sql: dict[str, str] = {}
        self._session = session
        self._folder = folder
        self._root = folder.absolute()

    def shown(self, path: Path) -> Path:
        """A path of the project as seen by the user."""
        return self._folder / path.relative_to(self._root) if path.is_relative_to(self._root) else path

    def place(self, element: Output | Flow) -> str:
        """``file:line`` of a definition in Python."""
        where = element.source_code_location
        return f"{self.shown(Path(where.filename))}:{where.line_number}"

    def register_output(self, output: Output) -> None:
        self.outputs.append(output)

    def register_flow(self, flow: Flow) -> None:
        self.flows.append(self._flow(flow))

    def register_sql(self, sql_text: str, file_path: Path) -> None:
        self.sql[str(file_path)] = sql_text

    def _flow(self, flow: Flow) -> PythonFlow:
        what = f"{self.place(flow)}: {flow.name}"
        write = 'write the query in SQL: return spark.sql("{}")'.format
        example = write("SELECT ...")
        try:
            with standing_in(flow.func, Recorded()):
                made = flow.func()
            if isinstance(made, Recorded):
                text = query_of(made)
                if text is not None:
                    return PythonFlow(flow, text, None)
                if not reads_from_outside(made):
                    returned = short(described(made))
                    raise ProjectError(f"{what}: its function returns {returned}; {write(select_of(made))}")
                made = replayed(made, self._session)
        except UsedTooEarly:
            raise ProjectError(f"{what}: its function reads rows, which exist only in a run; {example}") from None
        except ProjectError:
            raise
        except SPARK_ERRORS as error:
            raise ProjectError(f"{what}: {cause(error)}") from None
        except Exception as error:
            path = Path(flow.source_code_location.filename)
            line = _line_in(path, error)
            where = f"{self.shown(path)}:{line}: {flow.name}" if line else what
            failure = f"{type(error).__name__}: {cause(error)}"
            raise ProjectError(f"{where}: its function fails: {failure}; correct the file") from None
        if not isinstance(made, DataFrame):
            raise ProjectError(f"{what}: its function returns {type(made).__name__}, not a DataFrame; {example}")
        return PythonFlow(flow, None, made)


def read_definitions(spec: ProjectSpec, session: Any) -> Definitions:
    """Run the Python files of a project and read its SQL files. Raises ProjectError."""
    definitions = Definitions(session, spec.folder)
    files = [(path, path.absolute()) for path in spec.files()]
    with contextlib.chdir(spec.folder), graph_element_registration_context(definitions):
        for shown, path in files:
            if path.suffix == ".sql":
                definitions.register_sql(_text(shown, path), shown)
            else:
                _run(shown, path)
    return definitions


def _text(shown: Path, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ProjectError(f"{shown}: cannot be read: {reason}; a file with SQL is accepted") from None


def _run(shown: Path, path: Path) -> None:
    found = importlib.util.spec_from_file_location(path.stem, str(path))
    assert found is not None and found.loader is not None
    module: ModuleType = importlib.util.module_from_spec(found)
    try:
        found.loader.exec_module(module)
    except ProjectError:
        raise
    except (Exception, SystemExit) as error:
        kind = "" if isinstance(error, SPARK_ERRORS) else f"{type(error).__name__}: "
        line = error.lineno if isinstance(error, SyntaxError) else _line_in(path, error)
        where = f"{shown}:{line}" if line else str(shown)
        raise ProjectError(f"{where}: {kind}{cause(error)}; correct the file") from None


def _line_in(path: Path, error: BaseException) -> int | None:
    lines = [one.lineno for one in traceback.extract_tb(error.__traceback__) if one.filename == str(path)]
    return lines[-1] if lines else None
