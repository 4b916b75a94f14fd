"""Which stores of a program a trigger appends rows to, instead of finding a row by its key at once.

A store of a relation, such as ``sales`` under ``first_order``, is added to by the relation's own trigger and read
by those of the others only. While large batches of inserts come for that relation alone, slots and indexes of
the store serve nobody, so its trigger leaves the rows *pending* (``kernel.hash.pending``), and every other trigger, and
enumeration, enters them before it begins. That is storage alone: as a map from keys to payloads, which is what the
interpreter has, the store is the same at every time.

A view qualifies where a pending row means what a row of its own would: no journal names it, no ordered index or
subset holds it, nothing asks whether it was there before, and its components are integers, which are merged by
adding words. Within the triggers of one relation nothing but the one Add touches it, else every batch would enter
what it appends.
"""

from __future__ import annotations

from freshviews.program.program import Program, Trigger
from freshviews.program.results import Held
from freshviews.program.statements import Add, Body
from freshviews.program.structure import views_in, visit
from freshviews.program.views import View
from freshviews.ring import RINGS


def touched(body: Body) -> tuple[str, ...]:
    """The views that a body reads or changes, each once."""
    return tuple(dict.fromkeys(view for statement in visit(body) for view in views_in(statement)))


def appended(program: Program, trigger: Trigger) -> tuple[str, ...]:
    """The views that a trigger appends rows to."""
    adds = [s for s in trigger.body if isinstance(s, Add) and not (s.appear or s.vanish or s.stay)]
    waiting = [add.view for add in adds if _may_wait(program, program.view(add.view))]
    if not waiting:
        return ()
    of_relation = [one for one in program.triggers if one.relation == trigger.relation]
    mentions = [view for one in of_relation for s in visit(one.body) for view in views_in(s)]
    return tuple(view for view in waiting if mentions.count(view) == 1)


def entered(program: Program, trigger: Trigger) -> tuple[str, ...]:
    """The views whose pending rows a trigger enters before it begins."""
    pending = with_pending(program)
    own = appended(program, trigger)
    return tuple(view for view in touched(trigger.body) if view in pending and view not in own)


def with_pending(program: Program) -> frozenset[str]:
    """The views of a program that some trigger appends rows to."""
    return frozenset(view for trigger in program.triggers for view in appended(program, trigger))


def _may_wait(program: Program, view: View) -> bool:
    integers = all(RINGS[component.ring].words == 1 for component in view.components)
    held = isinstance(program.result, Held) and program.result.view == view.name
    plain = not (view.journal or view.subsets or view.tally) and not view.ordered and not held
    emptied = any(view.name == edit for join in program.upkeep.joins for _, edit in join.edits)
    return bool(view.key) and integers and plain and not emptied
