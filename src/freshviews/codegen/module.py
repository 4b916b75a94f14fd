"""Loads generated source as compiled functions; the name of a module is the hash of its source."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import threading
from collections.abc import Callable, Iterable
from itertools import chain
from types import ModuleType
from typing import Any

from freshviews.kernel.machine.beside import machine_code, may_stand_in, ordered, waiting_for
from freshviews.kernel.machine.cache import cache_folder, load_generated
from freshviews.kernel.memory import mem
from freshviews.kernel.memory.collection import no_collection
from freshviews.records import dataclass

Function = Callable[..., int]
Compiled = Callable[..., int | None]
"""A function of words: a kernel, or one that ``build`` loaded."""

LONG = 5_000
"""Lines of source up to which all of it is one section."""

_DEFINED = re.compile(r"^def (\w+)\(", re.MULTILINE)
_WORD = re.compile(r"\w+")
_lock = threading.RLock()


def _renew_lock() -> None:
    global _lock
    _lock = threading.RLock()


# A thread that writes or loads may hold it where another forks.
os.register_at_fork(after_in_child=_renew_lock)


@dataclass(frozen=True)
class Written:
    """Source of functions. ``sections`` are functions that are loaded together, after ``head``: each calls functions of
    its own section and of those before. ``constants`` are the strings whose codes the state holds, in order, ``shapes``
    the words that its status leads to."""

    head: str
    sections: tuple[tuple[str, ...], ...]
    constants: tuple[str, ...] = ()
    shapes: tuple[tuple[int, ...], ...] = ()


class Source:
    """Source that is written when it is first needed. ``names``: of the functions that are called from outside."""

    def __init__(self, names: Iterable[str], write: Callable[[], Written]) -> None:
        self.names = tuple(names)
        self._write = write
        self._written: Written | None = None
        self._waiting: list[Callable[[Written], None]] = []

    @property
    def is_written(self) -> bool:
        return self._written is not None

    def written(self) -> Written:
        """The source, written now if it is not."""
        with _lock:
            if self._written is None:
                # After an interrupt, all of this is done again.
                written = self._write()
                for use in self._waiting:
                    use(written)
                self._written = written
                self._waiting.clear()
            return self._written

    def when_written(self, use: Callable[[Written], None]) -> None:
        """Call a function with the written source: now, or before the first function of the source is loaded."""
        with _lock:
            if self._written is None:
                self._waiting.append(use)
            else:
                use(self._written)

    def __str__(self) -> str:
        """All functions as the source of one module."""
        written = self.written()
        return written.head + "\n\n".join(chain.from_iterable(written.sections))


def hash_of(source: str) -> str:
    """The hash that names a generated module and its functions."""
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def defined(text: str) -> list[str]:
    """Names of the functions that a text defines."""
    return _DEFINED.findall(text)


def may_be_later() -> bool:
    """True if functions may be written and loaded at their first call, i.e. whether plain Python may run first."""
    return mem.PURE_PYTHON or may_stand_in()


def build(source: Source, ahead: Iterable[str]) -> dict[str, Function]:
    """The functions that ``source`` defines, by their names in it.

    Functions named in ``ahead`` are compiled now, others at their first call. If plain Python may run first, each of
    several sections is loaded at the first call of one of its functions: a join of 60 tables has 100,000 lines, and a
    batch of one table runs few of them.

    A program has one module, a long program several. The names of functions end in the module's hash, because Numba can
    mix up functions of the same name from forked workers.
    """
    loader = _Loader(source)
    later = may_be_later() and (not source.is_written or len(source.written().sections) > 1)
    if later:
        return {name: _Later(loader, name) for name in source.names}
    functions = {name: loader.function(name) for name in source.names}
    compile_ahead(*(functions[name] for name in ahead))
    return functions


class _Loader:
    """Loads the sections of a source, each when one of its functions is needed."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._of: dict[str, _Section] = {}

    def function(self, name: str) -> Function:
        """A function of the source, loaded now if it is not."""
        with _lock:
            if not self._of:
                sections: list[_Section] = []
                written = self._source.written()
                for texts in written.sections:
                    sections.append(_Section(written, texts, tuple(sections)))
                self._of = {one: section for section in sections for one in section.names}
            return self._of[name].functions()[name]


class _Section:
    """Functions that become one module when one of them is needed; they may call those of sections before."""

    def __init__(self, written: Written, texts: tuple[str, ...], before: tuple[_Section, ...]) -> None:
        self._written = written
        self._texts = texts
        self._before = before
        self._functions: dict[str, Function] | None = None
        self._digest = ""
        self.names = [name for text in texts for name in defined(text)]

    def functions(self) -> dict[str, Function]:
        """The functions by their names in the source, loaded now if they are not."""
        if self._functions is None:
            self._functions = self._loaded()
        return self._functions

    def _loaded(self) -> dict[str, Function]:
        body = "\n\n".join(self._texts)
        text = self._written.head + self._imports(body) + body
        self._digest = hash_of(text)
        names = defined(body)
        module = _load(_renamed(text, names, self._digest), self._digest)
        return {name: getattr(module, f"{name}_{self._digest}") for name in names}

    def _imports(self, body: str) -> str:
        """Lines that bind the functions of earlier sections, which are loaded for this one."""
        words = set(_WORD.findall(body)) if self._before else set()
        lines = []
        for section in self._before:
            called = sorted(words.intersection(section.names))
            if called:
                section.functions()
                digest = section._digest
                lines += [f'{name} = load_generated("{digest}").{name}_{digest}' for name in called]
        if lines:
            lines = ["from freshviews.kernel.machine.cache import load_generated", "", *lines, "", "", ""]
        return "\n".join(lines)


class _Later:
    """A function that is written and loaded when it is first called or compiled."""

    def __init__(self, loader: _Loader, name: str) -> None:
        self._loader = loader
        self._name = name

    @property
    def function(self) -> Any:
        """The function itself."""
        return self._loader.function(self._name)

    @property
    def code(self) -> Any:
        """Its machine code."""
        return self.function.code

    def __call__(self, *words: int) -> int:
        return self._loader.function(self._name)(*words)


def compile_ahead(*functions: Compiled) -> bool:
    """Compile functions of words now, so that no commit compiles them: kernels, and functions that ``build`` loaded.

    False if some of them run as plain Python for a while (``kernel.machine.beside``).
    """
    if mem.PURE_PYTHON:
        return True
    with no_collection():
        found: list[Any] = [getattr(function, "function", function) for function in functions]
        with waiting_for([(one, one.kinds) for one in found]):
            made = [machine_code(one, one.kinds) for one in found]  # All are ordered before the first one is there.
    return None not in made


def order(*functions: Compiled) -> bool:
    """Have kernels and loaded functions compiled by another process, without waiting; returns whether all are."""
    if mem.PURE_PYTHON:
        return True
    found: list[Any] = [getattr(function, "function", function) for function in functions]
    made = [ordered(one, one.kinds) for one in found]  # All are ordered before the first one is there.
    return None not in made


def _renamed(source: str, names: list[str], digest: str) -> str:
    """The source with the digest appended to the names of its functions, which no local variable has."""
    renamed = {name: f"{name}_{digest}" for name in names}
    # One alternative for all numbered names of a kind: there may be hundreds.
    kinds = "|".join(dict.fromkeys(re.sub(r"\d+$", r"\\d+", name) for name in names))
    return re.sub(rf"\b(?:{kinds})\b", lambda found: renamed.get(found[0], found[0]), source)


def _load(source: str, digest: str) -> ModuleType:
    path = cache_folder() / f"p{digest}.py"
    if not path.exists():
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "w") as file:
            file.write(source)
        os.replace(temporary, path)
    return load_generated(digest)
