"""Finds the views whose inserts a trigger may defer: the rows are appended now, and their keys are looked up later."""

from __future__ import annotations

from freshviews.codegen.layout import words_of
from freshviews.program.program import Program, Trigger
from freshviews.program.results import Held
from freshviews.program.statements import Add, Body
from freshviews.program.structure import views_in, visit
from freshviews.program.views import View


def touched(body: Body) -> tuple[str, ...]:
    """The views that a body reads or changes, each once."""
    return tuple(dict.fromkeys(view for statement in visit(body) for view in views_in(statement)))


def appended(program: Program, trigger: Trigger) -> tuple[str, ...]:
    """The views that a trigger appends rows to.

    Under ``first_order``, the trigger of ``sales`` adds to a store of sales, which only triggers of other relations
    read. While large batches of sales arrive, nothing reads the store. So the trigger *defers* the inserts
    (``kernel.hash.pending``). Every other trigger, and every reader, first flushes the deferred rows to the index.

    Deferral needs a view without a journal, an ordered index or a subset, because these need each row immediately. No
    statement may test whether a row was present before. The components of a row must be integers, so that rows with
    equal keys are merged by addition. No evaluation, and no other statement of the relation's triggers, may read the
    view. Otherwise every batch would flush its own deferred rows.
    """
    adds = [s for s in trigger.body if isinstance(s, Add) and not (s.appear or s.vanish or s.stay)]
    waiting = [add.view for add in adds if _may_wait(program, program.view(add.view))]
    if not waiting:
        return ()
    return tuple(view for view in waiting if program.mentions[trigger.relation][view] == 1)


def entered(program: Program, trigger: Trigger, pending: frozenset[str]) -> tuple[str, ...]:
    """The views whose deferred rows a trigger flushes before it begins; ``pending``: those of ``with_pending``."""
    own = appended(program, trigger)
    return tuple(view for view in touched(trigger.body) if view in pending and view not in own)


def with_pending(program: Program) -> frozenset[str]:
    """The views of a program that some trigger appends rows to."""
    return frozenset(view for trigger in program.triggers for view in appended(program, trigger))


def _may_wait(program: Program, view: View) -> bool:
    integers = all(words_of(component) == 1 for component in view.components)
    held = isinstance(program.result, Held) and program.result.view == view.name
    plain = not (view.journal or view.subsets or view.tally) and not view.ordered and not held
    emptied = any(view.name == edit for join in program.upkeep.joins for _, edit in join.edits)
    # An evaluation builds tries of all rows, but finds rows by their slots and indexes.
    looked_up = view.name in touched(program.upkeep.statements)
    return bool(view.key) and integers and plain and not emptied and not looked_up
