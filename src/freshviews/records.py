"""Makes frozen dataclasses quickly, because a starting program defines hundreds of classes and makes few records.

``dataclasses`` compiles the text of six methods per frozen class, which takes half a millisecond. The decorator of this
module adds the same fields, and methods with the same effect: ``__init__`` is compiled when it is first looked up, and
the other methods are closures over field names. Type checkers see ``dataclasses.dataclass`` instead.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, **options):
        """A class as a dataclass, as ``dataclasses.dataclass`` makes it.

        A class with the option ``frozen=True`` alone is quick to define. Its subclasses that are dataclasses are frozen
        and use this decorator, too.

        Parameters
        ----------
        cls : the class; without it, a decorator
        options : those of ``dataclasses.dataclass``; with others than ``frozen`` it makes the class

        Raises
        ------
        TypeError
            The class sets attributes itself (``__setattr__``), or as ``dataclasses.dataclass`` raises it.

        Examples
        --------
        >>> @dataclass(frozen=True)
        ... class Point:
        ...     x: int
        ...     y: int = 0
        >>> Point(3)
        Point(x=3, y=0)
        """
        make = _frozen if options == {"frozen": True} else dataclasses.dataclass(**options)
        return make if cls is None else make(cls)


def _frozen(cls: type) -> type:
    """The class with its fields and methods."""
    own = set(vars(cls))
    if own & {"__setattr__", "__delattr__"}:
        raise TypeError(f"{cls.__name__} is frozen, so it cannot define __setattr__ or __delattr__")
    dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    fields = dataclasses.fields(cls)
    names = frozenset(field.name for field in fields)
    methods: dict[str, Any] = {
        "__init__": _Init(cls),
        "__repr__": _repr([field.name for field in fields if field.repr]),
        "__eq__": _eq(_values([field.name for field in fields if field.compare])),
        "__setattr__": _refusing("assign to", cls, names),
        "__delattr__": _refusing("delete", cls, names),
    }
    if vars(cls).get("__hash__") is None:
        hashed = [field.name for field in fields if (field.compare if field.hash is None else field.hash)]
        methods["__hash__"] = _hash(_values(hashed))
        own.discard("__hash__")
    for name, method in methods.items():
        if name not in own:
            setattr(cls, name, method)
    return cls


class _Factory:
    """The default, in a signature, of a field whose value a function makes."""

    def __repr__(self) -> str:
        return "<factory>"


class _Init:
    """The ``__init__`` of a class until it is first looked up."""

    def __init__(self, owner: type) -> None:
        self.owner = owner

    def __get__(self, record: object, kind: type | None = None) -> Any:
        init = _init(self.owner)
        setattr(self.owner, init.__name__, init)
        return init.__get__(record, kind)


def _init(cls: type) -> Any:
    """The compiled ``__init__``: it sets the fields in order, then calls ``__post_init__``."""
    parameters: list[str] = []
    keywords: list[str] = []
    lines: list[str] = []
    given: dict[str, object] = {"_set": object.__setattr__, "_missing": _Factory()}
    for field in dataclasses.fields(cls):
        name, value = field.name, field.name
        default = ""
        if field.default is not dataclasses.MISSING:
            given[f"_default_{name}"] = field.default
            default = value = f"_default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            given[f"_make_{name}"] = field.default_factory
            default, value = "_missing", f"_make_{name}()"
        if field.init:
            (keywords if field.kw_only else parameters).append(f"{name}={default}" if default else name)
            value = f"{value} if {name} is _missing else {name}" if default == "_missing" else name
        elif not default:
            continue
        lines.append(f"  _set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("  self.__post_init__()")
    signature = ", ".join(["self", *parameters, *(["*", *keywords] if keywords else [])])
    text = f"def make({', '.join(given)}):\n def __init__({signature}):\n" + "\n".join(lines or ["  pass"])
    made: dict[str, Any] = {}
    exec(f"{text}\n return __init__", vars(sys.modules[cls.__module__]), made)
    init = made["make"](**given)
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {field.name: field.type for field in dataclasses.fields(cls) if field.init}
    init.__annotations__["return"] = None
    return init


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Reads fields of a record as a tuple."""
    if len(names) == 1:
        value = attrgetter(*names)
        return lambda record: (value(record),)
    return attrgetter(*names) if names else lambda record: ()


def _eq(values: Callable[[Any], tuple[Any, ...]]) -> Any:
    def __eq__(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return __eq__


def _hash(values: Callable[[Any], tuple[Any, ...]]) -> Any:
    def __hash__(self: Any) -> int:
        return hash(values(self))

    return __hash__


def _repr(names: list[str]) -> Any:
    @recursive_repr()
    def __repr__(self: Any) -> str:
        return f"{self.__class__.__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    return __repr__


def _refusing(what: str, cls: type, names: frozenset[str]) -> Any:
    """``__setattr__`` or ``__delattr__``, which refuses the fields."""

    def refuse(self: Any, name: str, *value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot {what} field {name!r}")
        act = super(cls, self)
        act.__setattr__(name, *value) if value else act.__delattr__(name)

    return refuse
