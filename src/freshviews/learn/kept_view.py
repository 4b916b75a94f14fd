"""Creates, reads and drops the materialized view from which a model is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

from freshviews import arguments
from freshviews.engine.change import Subscription
from freshviews.engine.database import Database
from freshviews.errors import FreshviewsError


class LearnError(FreshviewsError):
    """A model cannot be computed from the present rows, or from the given frame.

    Examples
    --------
    >>> model = learn.PCA(db, "flats WHERE rooms > 9", ["rooms", "area"], name="axes")
    >>> model.mean_
    Traceback (most recent call last):
    freshviews.learn.kept_view.LearnError: model axes has 0 rows; it needs 2 or more
    """


class KeptView:
    """A materialized view of a database, made for a model over some variables.

    ``name``: that of the view to create; ``select``: its query. Raises LearnError if a variable is named twice, else as
    ``Database.execute``, with a note that has the statement.
    """

    def __init__(self, database: Database, name: str, variables: Sequence[str], select: str) -> None:
        if len({variable.lower() for variable in variables}) != len(variables):
            raise LearnError(f"model {name}: a variable is given twice in {', '.join(variables)}; name each once")
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
        """Raise the error that reading the view would raise.

        Raises
        ------
        FreshviewsError
            The database is closed.
        CatalogError
            The view was dropped.

        Examples
        --------
        >>> view.check()
        """
        self._view.check()

    def subscribe(self, callback: Callable[[], object]) -> Subscription:
        """Call a function after every version that changes the view.

        Parameters
        ----------
        callback
            Function without parameters.

        Returns
        -------
        Subscription
            Call it to end the subscription.

        Raises
        ------
        ArgumentError
            ``callback`` cannot be called.

        Examples
        --------
        >>> subscription = view.subscribe(lambda: print("changed"))
        >>> version = db.insert("flats", [("Oslo", "loft", 2, 45.0, 260.0)])
        changed
        """
        arguments.function(f"view {self.name}: callback", callback)
        return self._view.subscribe(lambda _: callback())

    def drop(self) -> None:
        """Drop the view.

        Examples
        --------
        >>> view.drop()
        """
        self._database.execute(f"DROP VIEW {self.name}")


class Model:
    """A model of the rows of a view that it keeps."""

    _view: KeptView

    @property
    def name(self) -> str:
        """The name of the view."""
        return self._view.name

    def subscribe(self, on_change: Callable[[Self], object]) -> Subscription:
        """Call a function with the model after every version that changes its moments or counts.

        Parameters
        ----------
        on_change
            Function of the model.

        Returns
        -------
        Subscription
            Call it to end the subscription.

        Raises
        ------
        ArgumentError
            ``on_change`` cannot be called.

        Examples
        --------
        >>> subscription = model.subscribe(lambda fresh: print("fresh"))
        >>> version = db.insert("flats", [("Oslo", "loft", 2, 45.0, 260.0)])
        fresh
        """
        arguments.function(f"model {self.name}: on_change", on_change)
        return self._view.subscribe(lambda: on_change(self))

    def drop(self) -> None:
        """Drop the view of the model, which then is no longer fresh.

        Examples
        --------
        >>> model.drop()
        """
        self._view.drop()


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
