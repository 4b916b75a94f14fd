"""Replaces an expression of a grouped SELECT by the expression of GROUP BY that means the same, if there is one.

With ``GROUP BY a + b``, an expression ``b + a`` in the list becomes ``a + b``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlglot import exp

from freshviews.errors import SqlError
from freshviews.expr.nodes import Expr
from freshviews.sql.blocks.aggregates import is_aggregate
from freshviews.sql.blocks.forms import Form, Forms, negated
from freshviews.sql.expressions.expression import is_subquery_value
from freshviews.sql.text.parse import Node

_LOGICAL: tuple[type[Node], ...] = (
    *(exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
    *(exp.Not, exp.Is, exp.In, exp.Like, exp.ILike, exp.RegexpLike, exp.Between),
)
"""Conditions; two of different classes may have equal forms."""


def spell_groups(select: exp.Select, groups: Sequence[Node], forms: Forms, bind: Callable[[Node], Expr]) -> None:
    """Replace each part of a grouped SELECT that has the form of a group, or is NOT of one, by the text of the group.

    ``groups``: the expressions of GROUP BY. ``bind``: returns the value of a part; parts of another type stay.
    """
    known: dict[Form, Node] = {}
    for one in groups:
        form = forms.of(one)
        if form is not None:
            known.setdefault(form, one)
    kinds: set[type[Node]] = set()
    for one in groups:
        kinds.update(_LOGICAL if type(one) in _LOGICAL else (type(one),))
    for part in list(_parts(select, forms)):
        form = forms.of(part) if type(part) in kinds else None
        group = None if form is None else known.get(form)
        inverse = None if form is None or group is not None else known.get(negated(form))
        spelled = inverse if group is None else group
        if spelled is None or spelled == part or not _alike(part, spelled, bind):
            continue
        made = exp.Paren(this=spelled.copy())
        made = made if inverse is None else exp.Paren(this=exp.Not(this=made))
        made.meta.update(part.meta)
        part.replace(made)


def _alike(part: Node, group: Node, bind: Callable[[Node], Expr]) -> bool:
    try:
        return bind(part).type == bind(group).type
    except SqlError:
        return False


def _parts(select: exp.Select, forms: Forms) -> Iterator[Node]:
    """The expressions over the groups of a SELECT and their parts, each expression before its parts.

    Without ORDER BY if a name in it denotes a column of the list there, and one of FROM elsewhere.
    """
    aliases = [one for one in select.expressions if isinstance(one, exp.Alias)]
    renamed = {one.alias.lower() for one in aliases}
    order = None if any(one.name.lower() in renamed for one in forms.scope.visible) else select.args.get("order")
    clauses = [select.args.get("having"), select.args.get("qualify"), order]
    waiting = [*(one for one in clauses if one is not None), *select.expressions, *(select.args.get("windows") or ())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.Window):
            call = node.this.this if isinstance(node.this, exp.Filter) else node.this
            waiting += call.iter_expressions()
            waiting += (one for one in node.iter_expressions() if one is not node.this)
        elif not isinstance(node, exp.Filter) and not is_aggregate(node) and not is_subquery_value(node):
            yield node
            waiting += node.iter_expressions()
