"""Imports ``pyarrow.compute`` only when a function of it is used, for a faster start."""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """A function of pyarrow.compute."""
    found = globals()[name] = getattr(import_module("pyarrow.compute"), name)
    return found
