"""Rewrites conditions as ranges of one variable: ``a.price - b.price > 1000`` is ``a.price > b.price + 1000``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from freshviews.expr.nodes import Call, Column, Expr, Literal, columns_of
from freshviews.expr.ops import may_fail
from freshviews.plan.delta.range_sums.grid import MOST_TERMS, is_on_grid, joined, off_grid
from freshviews.records import dataclass
from freshviews.types import BIGINT, BOOLEAN, DOUBLE, SqlType

_TURNED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "eq": "eq", "ne": "ne"}
_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "eq": "ne", "ne": "eq"}
_FITS = 2**62
"""Integers up to this magnitude are added without overflow."""
_WIDEST = 2**60
_NARROWEST = 2**8
"""The smallest limit that is accepted: under a smaller one, too many values would be beyond it."""
_LIMITED = {"add_micros": 2**57, "date_add_days": 2**21, "date_diff_days": 2**21}
"""Operations on dates, with the greatest magnitude of results and arguments for which they are sums."""


@dataclass(frozen=True)
class _Arithmetic:
    """Operations that add or subtract, with the sign of the second argument; the three that bounds are made of; their
    type."""

    sums: Mapping[str, int]
    add: str
    subtract: str
    negate: str
    type: SqlType


_SUMS = {"add_int": 1, "sub_int": -1, "add_micros": 1, "date_add_days": 1, "date_diff_days": -1}
_INTEGERS = _Arithmetic(_SUMS, "add_int", "sub_int", "neg_int", BIGINT)
_DOUBLES = _Arithmetic({"add_float": 1, "sub_float": -1}, "add_float", "sub_float", "neg_float", DOUBLE)


@dataclass(frozen=True)
class Side:
    """A bound of a range: an expression over outside terms, left out if ``strict``. It is ``base`` and a constant."""

    expr: Expr
    strict: bool
    base: Expr | None
    constant: float = 0


@dataclass(frozen=True)
class Interval:
    """The values between two bounds, or beyond one."""

    low: Side | None = None
    high: Side | None = None

    def with_(self, other: Interval) -> Interval | None:
        """The values in both; None if both have a bound on the same side, as the greater one is not known here."""
        if (self.low and other.low) or (self.high and other.high):
            return None
        return Interval(self.low or other.low, self.high or other.high)

    @property
    def is_empty(self) -> bool:
        """True if it has no values, whatever the terms are."""
        low, high = self.low, self.high
        if low is None or high is None or low.base != high.base:
            return False
        return low.constant > high.constant or (low.constant == high.constant and (low.strict or high.strict))


@dataclass(frozen=True)
class Ranges:
    """Ranges of a variable, with coefficients: a row counts as often as the sum of the coefficients of its ranges,
    which is 1 or 0. ``checked``: the terms of the arithmetic; the magnitude of each must be at most ``limit``, and a
    double must be on the grid."""

    variable: Column
    parts: tuple[tuple[Interval, int], ...]
    checked: tuple[Expr, ...] = ()
    limit: int = _WIDEST

    def with_(self, other: Ranges) -> Ranges | None:
        """The values in both."""
        found = []
        for one, times in self.parts:
            for two, more in other.parts:
                both = one.with_(two)
                if both is None:
                    return None
                found.append((both, times * more))
        return self._joined(other, found)

    def or_(self, other: Ranges) -> Ranges | None:
        """The values in either: those of the first, those of the second, minus those in both."""
        both = self.with_(other)
        if both is None:
            return None
        return self._joined(other, [*self.parts, *other.parts, *((part, -times) for part, times in both.parts)])

    def _joined(self, other: Ranges, parts: Iterable[tuple[Interval, int]]) -> Ranges:
        checked = tuple(dict.fromkeys((*self.checked, *other.checked)))
        left = tuple((part, times) for part, times in parts if not part.is_empty)
        return replace(self, parts=left, checked=checked, limit=min(self.limit, other.limit))


def ranges_of(condition: Expr, opened: frozenset[str]) -> Ranges | None:
    """The ranges of the only ``opened`` variable of a condition for which it is TRUE; None if it has another form.

    A condition has a variable of a stored row (``a.price``), and terms without columns of that row (``b.price``). The
    condition is TRUE for the values in one or several ranges, whose ends are computed from the terms.

    Integer arithmetic is checked: a result that does not fit its type is an error. A range must not hide this error. So
    each range has a *limit*: while no term is greater in magnitude, neither the condition nor the ends can fail. If a
    term is greater, the loop evaluates the condition row by row. Arithmetic of doubles is rounded, so a condition with
    doubles becomes a range only for values on a grid (``grid``).
    """
    if not isinstance(condition, Call):
        return None
    if condition.op in ("and", "or"):
        one, other = (ranges_of(arg, opened) for arg in condition.args)
        if one is None or other is None or one.variable.name != other.variable.name:
            return None
        return one.with_(other) if condition.op == "and" else one.or_(other)
    if condition.op == "not":
        inner = condition.args[0]
        name, floats = _comparison(inner)
        if not name or not isinstance(inner, Call):
            return None
        return ranges_of(replace(inner, op=_OPPOSITE[name] + floats), opened)
    name, floats = _comparison(condition)
    if not name:
        return None
    left, right = condition.args
    if not opened.intersection(columns_of(left)):
        name, left, right = _TURNED[name], right, left
    return _compared(name, left, right, opened, bool(floats))


def _comparison(expr: Expr) -> tuple[str, str]:
    """The name of a comparison, and its suffix if it is one of doubles; empty for another expression."""
    if not isinstance(expr, Call):
        return "", ""
    name, _, suffix = expr.op.partition("_")
    return (name, f"_{suffix}" if suffix else "") if name in _TURNED and suffix in ("", "float") else ("", "")


def _compared(name: str, left: Expr, right: Expr, opened: frozenset[str], floats: bool) -> Ranges | None:
    """The ranges for ``left name right``, where the left side has the variable."""
    if isinstance(left, Column) and not opened.intersection(columns_of(right)) and not may_fail(right):
        return Ranges(left, _parts(name, right, right, 0)) if not left.type.is_text else None
    arithmetic = _DOUBLES if floats else _INTEGERS
    sum_ = _Sum(arithmetic)
    if not (sum_.add(left, 1) and sum_.add(right, -1)):
        return None
    own = [(term, sign) for term, sign in sum_.terms if opened.intersection(columns_of(term))]
    if len(own) != 1 or not isinstance(own[0][0], Column):
        return None
    variable, sign = own[0]
    assert isinstance(variable, Column)
    others = [(term, -sign * other) for term, other in sum_.terms if term is not variable]
    base = _total(others, arithmetic)
    bound = _shifted(base, -sign * sum_.constant, arithmetic)
    if floats:
        limit = _WIDEST if len(sum_.terms) + sum_.constants <= MOST_TERMS else None
    else:
        limit = narrow((left, right, bound))
    if limit is None:
        return None
    # A variable that is compared directly takes part in no arithmetic.
    checked: list[Expr] = [term for term, _ in others]
    if left != variable:
        checked.append(variable)
    parts = _parts(name if sign > 0 else _TURNED[name], bound, base, -sign * sum_.constant)
    return Ranges(variable, parts, tuple(dict.fromkeys(checked)), limit)


def _parts(name: str, bound: Expr, base: Expr | None, constant: float) -> tuple[tuple[Interval, int], ...]:
    """The ranges of the values ``name`` a bound."""
    above = Interval(low=Side(bound, name in ("gt", "ne"), base, constant))
    below = Interval(high=Side(bound, name in ("lt", "ne"), base, constant))
    match name:
        case "gt" | "ge":
            return ((above, 1),)
        case "lt" | "le":
            return ((below, 1),)
        case "eq":
            return ((Interval(above.low, below.high), 1),)
        case _:
            return ((below, 1), (above, 1))


@dataclass
class _Sum:
    """An expression as a sum of terms with signs, and a constant, which is the sum of ``constants`` doubles."""

    arithmetic: _Arithmetic = _INTEGERS
    terms: list[tuple[Expr, int]] = field(default_factory=list)
    constant: float = 0
    constants: int = 0

    def add(self, expr: Expr, sign: int) -> bool:
        """Adds the terms of an expression; returns False if it is not a sum of terms that cannot fail."""
        sums = self.arithmetic.sums
        if isinstance(expr, Literal) and isinstance(expr.value, float) and self.arithmetic is _DOUBLES:
            self.constant += sign * expr.value
            self.constants += 1
            return is_on_grid(expr.value)
        if isinstance(expr, Literal) and isinstance(expr.value, int) and not isinstance(expr.value, bool):
            self.constant += sign * expr.value
        elif isinstance(expr, Call) and expr.op in sums:
            return self.add(expr.args[0], sign) and self.add(expr.args[1], sign * sums[expr.op])
        elif isinstance(expr, Call) and expr.op == "check_range":
            return self.add(expr.args[0], sign)
        elif isinstance(expr, Call) and expr.op == self.arithmetic.negate:
            return self.add(expr.args[0], -sign)
        elif may_fail(expr):
            return False
        else:
            self.terms.append((expr, sign))
        return True


def shift_of(expr: Expr) -> tuple[Expr, float] | None:
    """An expression as a term and a constant that is added to it; None if it has another form."""
    sum_ = _Sum()
    if not sum_.add(expr, 1) or len(sum_.terms) != 1 or sum_.terms[0][1] != 1:
        return None
    return sum_.terms[0][0], sum_.constant


def _total(terms: list[tuple[Expr, int]], by: _Arithmetic) -> Expr | None:
    """The sum of terms with signs; None if there are none."""
    total: Expr | None = None
    for term, sign in sorted(terms, key=lambda one: -one[1]):
        if total is None:
            total = term if sign > 0 else Call(by.negate, (term,), by.type)
        else:
            total = Call(by.add if sign > 0 else by.subtract, (total, term), by.type)
    return total


def _shifted(total: Expr | None, constant: float, by: _Arithmetic) -> Expr:
    """A sum of terms and a constant."""
    if total is None:
        return Literal(constant, by.type)
    if constant == 0:
        return total
    return Call(by.add if constant > 0 else by.subtract, (total, Literal(abs(constant), by.type)), by.type)


# Limits


def narrow(exprs: Iterable[Expr], most: int = _WIDEST) -> int | None:
    """The greatest limit, a power of 2 and at most ``most``, of the magnitudes of terms within which no expression
    fails; None if it is too small."""
    wanted, limit = tuple(exprs), most
    while limit >= _NARROWEST:
        if all(_magnitude(expr, limit) is not None for expr in wanted):
            return limit
        limit >>= 1
    return None


def _magnitude(expr: Expr, limit: int) -> int | None:
    """The greatest magnitude of an expression of terms within a limit; None if it might fail."""
    if isinstance(expr, Literal):
        return abs(expr.value) if isinstance(expr.value, int) else 0
    if not isinstance(expr, Call) or not may_fail(expr):
        if isinstance(expr, Call) and expr.op in _LIMITED:
            return limit if limit <= _LIMITED[expr.op] else None
        return limit
    inner = [_magnitude(arg, limit) for arg in expr.args]
    sizes = [size for size in inner if size is not None]
    if len(sizes) < len(inner):
        return None
    match expr.op:
        case "add_int" | "sub_int" | "add_micros" | "date_add_days":
            size = sizes[0] + sizes[1]
        case "mul_int" | "scale_up":
            size = sizes[0] * sizes[1]
        case "neg_int":
            size = sizes[0]
        case "coalesce":
            size = max(sizes)
        case "check_range":
            low, high = (arg.value for arg in expr.args[1:] if isinstance(arg, Literal))
            assert isinstance(low, int) and isinstance(high, int)
            size = sizes[0]
            return size if size <= min(high, -low) else None
        case "lt" | "le" | "gt" | "ge" | "eq" | "ne" | "and" | "or" | "not":
            return 1
        case _:
            return None
    return size if size <= _LIMITED.get(expr.op, _FITS) else None


def beyond(terms: Iterable[Expr], limit: int) -> Expr | None:
    """The condition that a term is beyond a limit, or a double off the grid; FALSE for NULL. None without terms."""
    found: list[Expr] = []
    for term in terms:
        if term.type.is_float:
            found.append(off_grid(term))
            continue
        for op, bound in (("gt", limit), ("lt", -limit)):
            found.append(Call("is_true", (Call(op, (term, Literal(bound, BIGINT)), BOOLEAN),), BOOLEAN, False))
    return joined("or", found)
