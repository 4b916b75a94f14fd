"""Names of views and of their rows that collide with nothing else in a program."""

from __future__ import annotations

from freshviews.plan.leaves import parameters_of, spanning_lifts
from freshviews.query.query import Query

RESULT = "Q"
"""The view that holds the result, in every program that stores it."""


class Namer:
    """Hands out names for the program of one query."""

    def __init__(self, query: Query) -> None:
        self._views = {RESULT}
        self._aliases: dict[str, str] = {}
        self._variables = set(query.variables)
        self._variables.update(p.name for atom in query.atoms for p in parameters_of(query, atom))
        self._variables.update(let.variable for _, let, _ in spanning_lifts(query))

    def view(self, wanted: str) -> str:
        """A name for a view, the wanted one where it is not taken."""
        name = wanted
        while name in self._views:
            name += "_"
        self._views.add(name)
        return name

    def alias(self, view: str) -> str:
        """The name of a row of a view: the view's in lower case, or like it where that is taken."""
        if view not in self._aliases:
            name = view.lower()
            while name in self._variables:
                name += "_row"
            self._variables.add(name)
            self._aliases[view] = name
        return self._aliases[view]


def joined_name(atoms: tuple[str, ...]) -> str:
    """A name for the join of atoms: ``RST``, or with underscores where names are longer."""
    return ("" if all(len(name) == 1 for name in atoms) else "_").join(atoms)
