"""Defines the strategies ``ivm_eps`` and ``ivm_eps_linear``. Both choose the program of a block, and the exponent eps.

A value is heavy if about N^eps or more of N rows have it, otherwise light.

``ivm_eps_linear`` uses linear space, and plans only queries over three relations in a cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from freshviews.errors import PlanError
from freshviews.plan.assemble import assemble
from freshviews.plan.delta import first_order
from freshviews.plan.eps import four_relations, hierarchical, triangle, triangle_linear, triangle_listing
from freshviews.plan.strategy import Request, Strategy
from freshviews.program.program import Program
from freshviews.query.query import Query

EPSILON = "freshviews.epsilon"
AUTO = "auto"
"""The exponent that is left to the stream."""
CHOICES = (1 / 4, 1 / 3, 5 / 12, 1 / 2, 7 / 12, 2 / 3, 3 / 4)
"""The exponents that the stream may choose; with each, an update takes less than linear time. In linear space they
are 1/2 and more, for 4-cycles less."""


def plan_held(query: Query, epsilon: float | Mapping[str, float] | None = None) -> Program:
    """The program of a query over three or four relations whose result is held."""
    if len(query.atoms) == 4:
        return four_relations.plan(query, epsilon)
    return triangle.plan(query, triangle.DEFAULT if epsilon is None else epsilon)


def lists_by_exponent(request: Request) -> str | None:
    """True if the view names an exponent, and the rows or groups of the query can be listed."""
    if EPSILON not in request.options or request.needs_held_groups or not hierarchical.is_kept(request.query):
        return None
    return "hierarchical, and its exponent is named: values with many rows are kept apart, groups are listed"


def halves_updates(request: Request) -> str | None:
    """True if heavy and light parts make updates of some relation sublinear, in linear space."""
    try:
        helped = triangle_linear.is_helped(request.query)
    except PlanError:
        return None
    if not helped:
        return None
    return "cyclic, over three relations: values with many rows are kept apart, so no update takes linear time"


def _plan_square(request: Request) -> Program:
    """The program that lists rows where there is one for the query, else the one that holds the result."""
    block, main, given = request.block, request.query, epsilons_of(request)
    if hierarchical.is_kept(main):
        if not request.needs_held_groups:
            return _with_choices(request, hierarchical.plan(main, given), CHOICES)
        if len(main.atoms) != 3:
            raise PlanError(
                f"view {request.view.name}: ivm_eps does not store the groups, which MIN, MAX, DISTINCT aggregates and "
                "grouping sets need; set 'view_tree'"
            )
    if block.kind == "bag" or (request.is_distinct and not request.negative):
        listing = triangle_listing.plan(main, given, block.kind != "bag")
        if listing is not None:
            return _with_choices(request, listing, CHOICES)
    return _held(request, lambda query: plan_held(query, given), CHOICES)


def _plan_linear(request: Request) -> Program:
    given = epsilons_of(request)
    return _held(request, lambda query: triangle_linear.plan(query, given), tuple(c for c in CHOICES if c >= 0.5))


def _held(request: Request, plan: Callable[[Query], Program], choices: tuple[float, ...]) -> Program:
    """The program whose result is held. ``first_order`` maintains the values of distinct aggregates."""
    main = request.query
    program = assemble(
        request.block,
        lambda query: plan(query) if query is main else first_order.plan(query),
        bool(request.negative),
        joins_groups=True,
    )
    if four_relations.is_cycle(main):
        choices = tuple(c for c in choices if c < 0.5)
    return _with_choices(request, program, choices)


def _with_choices(request: Request, program: Program, choices: tuple[float, ...]) -> Program:
    """The program whose exponent is left to the stream, where the view says so."""
    if request.options.get(EPSILON) != AUTO or program.balancing is None:
        return program
    said = f"auto, from {choices[0]:.3g} to {choices[-1]:.3g}, by the degrees at major rebalancing"
    balancing = replace(program.balancing, choices=choices)
    return replace(program, balancing=balancing, bounds=(*program.bounds, ("epsilon", said)))


def epsilons_of(request: Request) -> Mapping[str, float]:
    """The named exponents by atom, and under the empty name the one for all others.

    '0.5', or 'r 0, s 0, t 1'; empty if the option is 'auto' or missing. PlanError if it cannot be read.

    The property ``'freshviews.epsilon'`` gives one exponent for all atoms, or one for each atom; with 'auto', the
    stream of updates determines it.
    """
    text = request.options.get(EPSILON, AUTO)
    if text == AUTO:
        return {}
    names = {atom.name.lower(): atom.name for atom in request.query.atoms}
    found: dict[str, float] = {}
    for part in text.split(","):
        *name, number = part.split() or [""]
        try:
            value = float(number)
            known = names[name[0].lower()] if name else ""
        except (ValueError, KeyError):
            value, known = -1.0, ""
        if not 0 <= value <= 1 or len(name) > 1:
            raise PlanError(
                f"view {request.view.name}: '{EPSILON}' must be 'auto', a number from 0 to 1, or such a number for "
                f"each of {', '.join(names)}, as in '{next(iter(names), 'r')} 0.5', not {text!r}"
            )
        found[known] = value
    return found


_PROPERTIES = frozenset({EPSILON})
SQUARE = Strategy("ivm_eps", _plan_square, plan_held, properties=_PROPERTIES)
LINEAR = Strategy("ivm_eps_linear", _plan_linear, triangle_linear.plan, properties=_PROPERTIES)
