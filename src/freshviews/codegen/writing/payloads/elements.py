"""Writes payloads of any ring: additions to accumulators and rows, and emitted payloads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeGuard

from freshviews.codegen.layout import STATUS_SHAPES, row_layout, words_of
from freshviews.codegen.writer import Module
from freshviews.codegen.writing.context import Context
from freshviews.codegen.writing.payloads.doubles import add_reals
from freshviews.codegen.writing.payloads.integers import integer, product, ring_of
from freshviews.codegen.writing.payloads.own_rings import ROW, addition
from freshviews.kernel.rings import cofactor
from freshviews.program.payload import ZERO, Component, ComponentOf, Monomial, Value
from freshviews.program.statements import Emit, Into, Sum
from freshviews.ring import NARROW, CofactorRing, RealRing, RecordedRing, Ring, named

Addition = Callable[[Context, Ring[object], str, list[ComponentOf | Value], str], None]
"""Writes the addition of a product to the element at an address: its ring, the address, the factors that are not
integers, and the source of the product of all others."""


def add_element(context: Context, ring: str, target: str, monomial: Monomial) -> None:
    """Add a monomial to the element of several words at an address."""
    kinds = [(factor, ring_of(context, factor) == "integer") for factor in monomial.factors]
    amount = product(context, [factor for factor, is_integer in kinds if is_integer], monomial.coefficient)
    elements = [factor for factor, is_integer in kinds if not is_integer]
    of = named(ring)
    _ADDITIONS[type(of)](context, of, target, elements, amount)


def _add_real(
    context: Context, ring: Ring[object], target: str, elements: list[ComponentOf | Value], amount: str
) -> None:
    """A real has one factor that is not an integer."""
    (real,) = elements
    if _is_lifted(real):
        kernel, source = "add_double", context.variable(real.name)
    else:
        kernel, source = "add_scaled", _address(context, real)
    if ring.name == NARROW.name:
        context.line(f"narrow_{kernel}({target}, {source}, {amount}, status)")
    else:
        context.line(f"real_{kernel}({target}, {source}, {amount})")


def _add_cofactor(
    context: Context, ring: Ring[object], target: str, elements: list[ComponentOf | Value], amount: str
) -> None:
    """The parts of a product: elements of rows and sums, and one element of all values that are lifted here."""
    assert isinstance(ring, CofactorRing)
    lifted = sorted((_range(context, one), one.name) for one in elements if _is_lifted(one))
    rows = [one for one in elements if not _is_lifted(one)]
    ranges = [_range(context, one) for one in rows]
    of_integers = ring.number == "integer"
    if len(rows) == 1 and not lifted and ranges[0] == ring.variables:
        source = _address(context, rows[0])
        if of_integers:
            context.line(_words_added(context.writer.module, ring, target, source, amount))
        else:
            context.line(f"wide_cofactor_add_scaled({target}, {source}, {len(ring.variables)}, {amount}, status)")
        return
    if lifted:
        ranges.append(tuple(variable for (variable,), _ in lifted))
    first = cofactor.FIRST_PART + cofactor.PART_WORDS * len(ranges)
    header = [len(ranges), len(ring.variables), *[0] * (cofactor.FIRST_PART - 2)]
    places: list[int] = []
    for i, variables in enumerate(ranges):
        header += [0, len(variables), first + len(places), int(i == len(rows))]
        places += (ring.variables.index(variable) for variable in variables)
    # A row that is lifted has a count and sums. Those of integers are its values; codes of doubles follow.
    size = 1 if of_integers else cofactor.SUM_SIZE
    element = first + len(places)
    codes = element + 1 if of_integers else element + 1 + size * len(lifted)
    header[cofactor.ROOM] = codes + len(lifted)
    room = cofactor.room_words(len(ranges), len(ring.variables), size)
    extra = [1, *[0] * (codes + len(lifted) - element - 1 + room)]
    shape = context.fresh("shape")
    at = context.writer.module.shape((*header, *places, *extra))
    context.line(f"{shape} = load(status, {STATUS_SHAPES}) + {8 * at}")
    for i, row in enumerate(rows):
        place = cofactor.FIRST_PART + cofactor.PART_WORDS * i
        context.line(f"store({shape}, {place}, {_address(context, row)})")
    if lifted:
        for i, (_, name) in enumerate(lifted):
            context.line(f"store({shape}, {codes + i}, {context.variable(name)})")
        own = f"{shape} + {8 * element}"
        if not of_integers:
            context.line(f"wide_cofactor_lift({own}, {shape} + {8 * codes}, {len(lifted)}, status)")
        context.line(f"store({shape}, {cofactor.FIRST_PART + cofactor.PART_WORDS * len(rows)}, {own})")
    context.line(f"{'' if of_integers else 'wide_'}cofactor_add({target}, {shape}, {amount}, status)")


def _add_recorded(
    context: Context, ring: Ring[object], target: str, elements: list[ComponentOf | Value], amount: str
) -> None:
    """Elements of rows and sums, and values that are lifted here."""
    assert isinstance(ring, RecordedRing)
    factors, given = [], []
    for one in elements:
        if _is_lifted(one):
            factors += _places(context, one)
            given.append(context.variable(one.name))
        else:
            factors.append(ROW)
            given.append(_address(context, one))
    function = addition(context.writer.module, ring, tuple(factors))
    context.line(f"{function}({', '.join([target, *given, amount, 'status'])})")


def _is_lifted(factor: ComponentOf | Value) -> TypeGuard[Value]:
    """Whether a factor is a code that is lifted; all others are elements in memory."""
    return isinstance(factor, Value) and not factor.whole


def _places(context: Context, factor: ComponentOf | Value) -> tuple[int, ...]:
    ring = named(ring_of(context, factor))
    assert isinstance(ring, RecordedRing)
    return ring.places


def _range(context: Context, factor: ComponentOf | Value) -> tuple[int, ...]:
    ring = named(ring_of(context, factor))
    assert isinstance(ring, CofactorRing)
    return ring.variables


_ADDITIONS: Mapping[type, Addition] = MappingProxyType(
    {RealRing: _add_real, CofactorRing: _add_cofactor, RecordedRing: _add_recorded}
)


def add_scaled(module: Module, ring: str, target: str, source: str, k: str) -> str:
    """Source that adds ``k`` times one element of several words to another one of its ring."""
    of = named(ring)
    if isinstance(of, RecordedRing):
        return f"{addition(module, of, (ROW,))}({target}, {source}, {k}, status)"
    if of is NARROW:
        return f"narrow_add_scaled({target}, {source}, {k}, status)"
    if not isinstance(of, CofactorRing):
        return f"real_add_scaled({target}, {source}, {k})"
    if of.number == "integer":
        return _words_added(module, of, target, source, k)
    return f"wide_cofactor_add_scaled({target}, {source}, {len(of.variables)}, {k}, status)"


def _words_added(module: Module, ring: CofactorRing, target: str, source: str, k: str) -> str:
    room = f"load(status, {STATUS_SHAPES}) + {8 * module.shape((0,) * cofactor.RUN_ROOM)}"
    return f"words_add_scaled({target}, {source}, {ring.words}, {k}, {room}, status)"


def _address(context: Context, factor: ComponentOf | Value) -> str:
    """Source of the address of an element."""
    if isinstance(factor, Value):
        address, place = context.elements[factor.name]
        return f"{address} + {8 * place}"
    holder = context.aliases[factor.alias]
    if isinstance(holder, Sum):
        return context.local(factor.alias, factor.component)
    return f"{context.row(factor.alias)} + {8 * row_layout(holder).offsets[factor.component]}"


def write_into(context: Context, statement: Into) -> None:
    """Add to the accumulators of a Sum."""
    total = context.aliases[statement.alias]
    assert isinstance(total, Sum)
    for component, monomial in zip(total.components, statement.payload, strict=True):
        local = context.local(statement.alias, component.name)
        if monomial == ZERO:
            continue
        if words_of(component) > 1:
            add_element(context, component.ring, local, monomial)
        else:
            context.line(f"{local} = plus({local}, {integer(context, monomial)}, status)")


def write_emitted(context: Context, statement: Emit, target: str, first: int) -> None:
    """Write the payload of an Emit to the words of ``target``, from word ``first`` on."""
    place = first
    additions = []
    for component, monomial in zip(context.program.result.emitted, statement.payload, strict=True):
        words = words_of(component)
        if words == 1:
            context.line(f"store({target}, {place}, {integer(context, monomial)})")
        else:
            additions.append((component, place, monomial))
        place += words
    if additions:
        _write_cleared(context, target, additions)
    for component, at, monomial in add_reals(context, target, additions):
        if monomial != ZERO:
            add_element(context, component.ring, f"{target} + {8 * at}", monomial)


def _write_cleared(context: Context, target: str, elements: Sequence[tuple[Component, int, Monomial]]) -> None:
    """Set the words of elements to zero, those that lie one after the other at once."""
    runs: list[tuple[int, int]] = []
    for component, at, _ in elements:
        if runs and sum(runs[-1]) == at:
            at, words = runs.pop()
            runs.append((at, words + words_of(component)))
        else:
            runs.append((at, words_of(component)))
    for at, words in runs:
        context.line(f"clear_words({target} + {8 * at}, {words})")


def write_emit(context: Context, statement: Emit) -> None:
    """Append a row to the changes."""
    row = context.fresh("out")
    context.line(f"{row} = append(changes)")
    for i, variable in enumerate(statement.row):
        context.line(f"store({row}, {i}, {context.variable(variable)})")
    write_emitted(context, statement, row, len(statement.row))
