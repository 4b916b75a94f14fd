"""Defines ``TracedJoin``, a join that a program maintains by its trace: the recorded steps of the join."""

from __future__ import annotations

from dataclasses import replace

from freshviews.expr.printer import print_expression
from freshviews.program.comparison import comparison_of
from freshviews.program.rule import Cursor, Rule
from freshviews.records import dataclass


@dataclass(frozen=True)
class TracedJoin:
    """A rule that is maintained by trace. ``edits``: pairs of a view that the rule reads and the view of its edits.

    The atoms of the ``rule`` are over views. A trigger adds each update to a view and to its ``edits`` view, which
    collects the changes of a batch. After the triggers, the trace is maintained from the edits
    (``program.reference.incremental_trie_join``), and the edits are cleared. The erased and inserted derivations are a
    batch of the relation ``derivations``, whose columns are the variables of the rule. Triggers of ``derivations``
    update the result.
    """

    rule: Rule
    edits: tuple[tuple[str, str], ...]
    derivations: str

    def renamed(self, names: dict[str, str]) -> TracedJoin:
        """The traced join with other names for views and for the relation of derivations."""
        atoms = tuple(replace(atom, relation=names[atom.relation]) for atom in self.rule.atoms)
        edits = tuple((names[view], names[edit]) for view, edit in self.edits)
        return TracedJoin(replace(self.rule, atoms=atoms), edits, names[self.derivations])

    def kept(self) -> list[str]:
        """The cursors that have a sensitivity index, as ``s(b, c) at c``; ``of runs``: an index of runs only."""
        return [name for name, is_kept in self._cursors() if is_kept]

    def dropped(self) -> list[str]:
        """The cursors without a sensitivity index: the atom's variables up to there are a prefix of the order."""
        return [name for name, is_kept in self._cursors() if not is_kept]

    def _cursors(self) -> list[tuple[str, bool]]:
        rule = self.rule
        return [
            (f"{rule.atoms[cursor.atom]} at {level.variable}{of_runs(cursor)}", cursor.kept)
            for level in rule.levels
            for cursor in (*level.cursors, *level.negated)
        ]

    def filters(self) -> list[str]:
        """Conditions and negated atoms with the variable that completes each, as ``!s(a, c) at c``, in order."""
        found = []
        for level in self.rule.levels:
            for condition in level.conditions:
                found.append(f"{comparison_of(condition) or print_expression(condition)} at {level.variable}")
            found += [f"{self.rule.atoms[cursor.atom]} at {level.variable}" for cursor in level.negated]
        return found

    def __str__(self) -> str:
        joined = ", ".join(str(atom) for atom in self.rule.atoms if not atom.negated)
        filters = self.filters()
        where = f" where {', '.join(filters)}" if filters else ""
        return f"{joined} in order of {', '.join(self.rule.order)}{where}"


def of_runs(cursor: Cursor) -> str:
    """A note for a sensitivity index that records only the runs of a negated atom."""
    return " of runs" if cursor.kept and cursor.pointed else ""
