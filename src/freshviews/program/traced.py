"""Of a program: a join whose derivations are kept by its trace, as statements see it.

Triggers of relations add to the rows of the ``rule``'s atoms, which are views (``Rule`` names a relation per atom: here
it is a view), and to what those grow by in the batch, ``edits``. When they have run, maintenance by trace
(``program.reference.incremental``) takes the edits in and empties them; what it erases and inserts is a batch of the
relation ``derivations``, whose columns are the variables of the rule, and triggers of that make the result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from freshviews.expr.printer import print_expression
from freshviews.program.comparison import comparison_of
from freshviews.program.rule import Cursor, Rule


@dataclass(frozen=True)
class TracedJoin:
    """``edits``: pairs of a view that the rule reads, and the view of what it grows by."""

    rule: Rule
    edits: tuple[tuple[str, str], ...]
    derivations: str

    def renamed(self, names: dict[str, str]) -> TracedJoin:
        """The same over views, and as a relation, of other names."""
        atoms = tuple(replace(atom, relation=names[atom.relation]) for atom in self.rule.atoms)
        edits = tuple((names[view], names[edit]) for view, edit in self.edits)
        return TracedJoin(replace(self.rule, atoms=atoms), edits, names[self.derivations])

    def kept(self) -> list[str]:
        """The cursors that have a sensitivity index, each as ``s(b, c) at c``; ``of runs``: of these alone."""
        return [name for name, is_kept in self._cursors() if is_kept]

    def dropped(self) -> list[str]:
        """The cursors that need none, as the variables of the atom so far are a prefix of the order."""
        return [name for name, is_kept in self._cursors() if not is_kept]

    def _cursors(self) -> list[tuple[str, bool]]:
        rule = self.rule
        return [
            (f"{rule.atoms[cursor.atom]} at {level.variable}{of_runs(cursor)}", cursor.kept)
            for level in rule.levels
            for cursor in (*level.cursors, *level.negated)
        ]

    def filters(self) -> list[str]:
        """Conditions and negated atoms, each where its variables are bound, as ``!s(a, c) at c``, in order."""
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
    """What is said of an index that has the runs of a negated atom alone."""
    return " of runs" if cursor.kept and cursor.pointed else ""
