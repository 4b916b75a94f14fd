"""Defines the *upkeep* of a program: the work that updates the program's views after the triggers of a batch."""

from __future__ import annotations

from dataclasses import fields, replace

from freshviews.program.statements import Body
from freshviews.program.structure import uses, visit
from freshviews.program.traced import TracedJoin
from freshviews.program.views import Trie, View
from freshviews.records import dataclass


class _Upkeep:
    statements: Body = ()
    tries: tuple[Trie, ...] = ()
    scratch: tuple[View, ...] = ()
    joins: tuple[TracedJoin, ...] = ()


@dataclass(frozen=True)
class ByTriggers(_Upkeep):
    """The triggers alone maintain all views."""


@dataclass(frozen=True)
class Evaluated(_Upkeep):
    """After the triggers have run, ``statements`` recompute the views that they add to, from ``tries`` over the other
    views. ``scratch`` views exist during the evaluation only; the statements clear them before use."""

    statements: Body
    tries: tuple[Trie, ...]
    scratch: tuple[View, ...]

    @property
    def recomputed(self) -> tuple[str, ...]:
        """The views that the statements recompute, each once: all that they add to except scratch views."""
        changed = (view for s in visit(self.statements) for view in uses(s).changes)
        scratch = {view.name for view in self.scratch}
        return tuple(dict.fromkeys(view for view in changed if view not in scratch))


@dataclass(frozen=True)
class Settled(_Upkeep):
    """After the triggers of a version have run, ``statements`` update the result from the rows that the triggers have
    noted, and clear these notes."""

    statements: Body


@dataclass(frozen=True)
class Traced(_Upkeep):
    """After the triggers of a batch have run, the traces of ``joins`` are maintained. The derivations of each are the
    batch of a relation of its own, whose triggers run then."""

    joins: tuple[TracedJoin, ...]


@dataclass(frozen=True)
class Recomputed(_Upkeep):
    """After each batch all views are emptied, and the triggers run over all stored rows of the inputs."""


Upkeep = ByTriggers | Evaluated | Settled | Traced | Recomputed
BY_TRIGGERS = ByTriggers()


def combine_upkeep(one: Upkeep, other: Upkeep) -> Upkeep:
    """The upkeep of a program that combines two. Raises ValueError if the two exclude each other."""
    if isinstance(one, ByTriggers) or isinstance(other, ByTriggers):
        return other if isinstance(one, ByTriggers) else one
    if type(one) is not type(other):
        kinds = f"{type(one).__name__.lower()} and {type(other).__name__.lower()}"
        raise ValueError(f"programs with different ways of maintaining views cannot be combined: {kinds}")
    return replace(one, **{each.name: getattr(one, each.name) + getattr(other, each.name) for each in fields(one)})


def upkeep_over(upkeep: Upkeep, views: dict[str, str], tries: dict[str, str]) -> Upkeep:
    """The upkeep over views, relations and tries of other names; its statements are unchanged."""
    match upkeep:
        case Evaluated():
            return replace(
                upkeep,
                tries=tuple(replace(t, name=tries[t.name], view=views[t.view]) for t in upkeep.tries),
                scratch=tuple(replace(view, name=views[view.name]) for view in upkeep.scratch),
            )
        case Traced():
            return Traced(tuple(join.renamed(views) for join in upkeep.joins))
        case ByTriggers() | Settled() | Recomputed():
            return upkeep
