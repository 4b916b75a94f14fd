"""Loads sqlglot's parser for Spark from Python sources, because Python classes cannot inherit from compiled ones."""

from __future__ import annotations

import sys
from importlib.machinery import EXTENSION_SUFFIXES, SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import sqlglot
from sqlglot.parsers import spark

_MODULES = ("sqlglot.parser", "sqlglot.parsers.hive", "sqlglot.parsers.spark2", "sqlglot.parsers.spark")
"""The modules in the order in which they import each other."""


def spark_parser() -> Any:
    """The class ``SparkParser``, interpreted."""
    if not str(spark.__file__).endswith(tuple(EXTENSION_SUFFIXES)):
        return spark.SparkParser
    compiled = {name: sys.modules[name] for name in _MODULES}
    try:
        for name in _MODULES:
            path = Path(str(sqlglot.__file__)).parent.joinpath(*name.split(".")[1:]).with_suffix(".py")
            spec = spec_from_loader(name, SourceFileLoader(name, str(path)))
            assert spec is not None and spec.loader is not None
            module = module_from_spec(spec)
            # The next module looks for it there.
            _put(name, module)
            spec.loader.exec_module(module)
        return module.SparkParser
    finally:
        for name, known in compiled.items():
            _put(name, known)


def _put(name: str, module: ModuleType) -> None:
    sys.modules[name] = module
    parent, _, own = name.rpartition(".")
    setattr(sys.modules[parent], own, module)
