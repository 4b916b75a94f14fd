"""The view that a model creates, reads and drops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from freshviews import arguments
from freshviews.engine.change import Subscription
from freshviews.engine.database import Database
from freshviews.errors import FreshviewsError


class LearnError(FreshviewsError):
    """Raised if a model cannot be computed from the present rows, or from the given frame."""


class KeptView:
    """A materialized view of a database, made for a model over some variables.

    ``name``: that of the view to create; ``select``: its query. Raises LearnError if a variable is named twice, else as
    ``Database.execute``, with a note that has the statement.
    """

    def __init__(self, database: Database, name: str, variables: Sequence[str], select: str) -> None:
        if len({variable.lower() for variable in variables}) != len(variables):
            raise LearnError(f"model {name}: {', '.join(variables)} has a variable twice; name each once")
        self.name = name
        self._database = database
        statement = f"CREATE MATERIALIZED VIEW {name} AS {select}"
        try:
            database.execute(statement)
        except FreshviewsError as error:
            # Its line and column refer to this text, which the user has not written.
            error.add_note(f"The model {name} creates its view by: {statement}")
            raise
        self._view = database.view(name)

    @property
    def version(self) -> int:
        """The last version of the database, which the view has. Raises as ``check``."""
        self.check()
        return self._database.version

    def check(self) -> None:
        """Raise the error that reading the view would raise, if it was dropped or the database is closed."""
        self._view.check()

    def subscribe(self, callback: Callable[[], object]) -> Subscription:
        """Have ``callback`` called after every version that changes the view."""
        arguments.function(f"view {self.name}: callback", callback)
        return self._view.subscribe(lambda _: callback())

    def drop(self) -> None:
        """Drop the view."""
        self._database.execute(f"DROP VIEW {self.name}")


def check_model(
    database: object, name: object, source: object, *lists: object, texts: Sequence[object] = ()
) -> None:
    """Raise ArgumentError if an argument of a model has the wrong type. ``lists``: of expressions; ``texts``: one
    each."""
    arguments.of(Database, "the database of a model", database)
    arguments.text("the name of a model", name)
    arguments.text(f"model {name}: source", source)
    for one in lists:
        arguments.texts(f"model {name}: variables", one)
    for one in texts:
        arguments.text(f"model {name}: target", one)


def numbered(variables: Sequence[str], letter: str = "v") -> tuple[list[str], str]:
    """Names v0, v1, ... for variables, and the SELECT items that give them. ``letter``: the prefix of the names."""
    names = [f"{letter}{i}" for i in range(len(variables))]
    return names, ", ".join(f"{variable} AS {name}" for name, variable in zip(names, variables, strict=True))
