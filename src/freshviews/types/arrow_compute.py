"""Imports ``pyarrow.compute`` at the first use of one of its functions, so that the program starts faster."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """A function of pyarrow.compute."""
    found = globals()[name] = getattr(import_module("pyarrow.compute"), name)
    return found
