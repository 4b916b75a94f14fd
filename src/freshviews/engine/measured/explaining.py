"""Makes the text of EXPLAIN for a view and for the internal views that it reads.

For an update that passes through several views, the text also bounds the total cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from freshviews.display.explanation import Explanation
from freshviews.display.graph import Node
from freshviews.engine.measured.replanning import ADVISED_GAIN, cheaper_strategy
from freshviews.engine.measured.samples import Measurements
from freshviews.engine.views.view_state import ViewState
from freshviews.plan.explain import parts, update_bound

Measure = Callable[[ViewState], Measurements]


def explained(
    view: ViewState, inner: Sequence[ViewState], measure: Measure, strategies: bool, updates: str | None
) -> Explanation:
    """The explanation of a view. ``inner``: its internal views, each after its inputs. ``strategies``: also compare all
    strategies. ``updates``: the property by which replanning pays, or None."""
    text = _text(view, measure, strategies)
    if inner or len(view.maintained.plans) > 1:
        head, reads, rest = text.split("\n", 2)
        whole = "\n".join(_whole([*inner, view]))
        texts = [f"{head}\n{reads}\n{whole}\n{rest}", *(_text(one, measure, strategies) for one in inner)]
        text = "\n".join(texts)
    if updates is not None:
        advice = f"replan: another join tree would at least halve the cost of updates; db.replan('{view.name}')"
        text = f"{text}\n{advice} chooses it, and sets 'freshviews.updates' = '{updates}'\n"
    made = _parts(view, measure) | {"inner": [_parts(one, measure) for one in inner]}
    return Explanation(text, made, [*_nodes([*inner, view])])


def _text(view: ViewState, measure: Measure, strategies: bool) -> str:
    maintained, measured = view.maintained, measure(view)
    comparisons = maintained.compare(measured.degrees, measured.rates) if strategies else ()
    text = maintained.explain(measured.degrees, comparisons)
    cheaper = cheaper_strategy(maintained.plans, comparisons, ADVISED_GAIN)
    if cheaper is not None and not view.definition.internal:
        best, steps, now = cheaper
        text += f"\nsteps: an update takes {steps:,.1f} steps with {best}, {now:,.1f} with this plan; "
        text += f"db.replan('{view.name}', strategies=True) switches to {best}\n"
    return text


def _whole(views: Sequence[ViewState]) -> Iterator[str]:
    """The lines of the bound of an update that passes through all views."""
    inner = {view.name for view in views[:-1]}
    width = max(len(view.name) for view in views)
    yield "whole     the update of a row costs the sum of"
    for view in views:
        outside = [name for name in view.maintained.inputs if name not in inner]
        changed = [name for name in view.maintained.inputs if name in inner]
        kinds = ((outside, "row"), (changed, "changed row"))
        rows = " or ".join(f"{kind} of {' or '.join(names)}" for names, kind in kinds if names)
        bound = update_bound(view.maintained.view, view.maintained.plans)
        yield f"          {view.name:<{width}}  per {rows}: {bound}"


def _parts(view: ViewState, measure: Measure) -> dict[str, Any]:
    maintained = view.maintained
    return parts(maintained.view, maintained.plans, maintained.sizes(), measure(view).degrees)


def _nodes(views: Sequence[ViewState]) -> Iterator[Node]:
    """The relations that are read from outside, then the views."""
    own = {view.name.lower() for view in views}
    read = dict.fromkeys(name for view in views for name in view.maintained.inputs if name.lower() not in own)
    yield from map(Node, read)
    for view in views:
        maintained = view.maintained
        bound = update_bound(maintained.view, maintained.plans)
        yield Node(view.name, (", ".join(maintained.strategies), bound), maintained.inputs)
