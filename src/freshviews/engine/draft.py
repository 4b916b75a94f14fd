"""Makes and drops relations for an SQL script. A draft has the relations as they will be after the script.

The relations of the draft replace those of the database when the whole script has succeeded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial

from freshviews.catalog.catalog import (
    AlterTable,
    AlterView,
    Catalog,
    Comment,
    DropTable,
    DropView,
    Statement,
    ViewDefs,
    commented,
    with_function,
    without_comments,
)
from freshviews.catalog.definitions import PlainView, TableDef, ViewDef
from freshviews.catalog.functions import DropFunction, FunctionDef
from freshviews.catalog.nesting import TOO_DEEP, room
from freshviews.catalog.timezone import SetTimeZone
from freshviews.engine.backfill import ROWS, fill, input_rows
from freshviews.engine.codes.decoding import Decoder
from freshviews.engine.codes.encoding import TableEncoder
from freshviews.engine.commit.free_memory import FreeMemory, Held, held_by, lacks_memory
from freshviews.engine.measured.replanning import better_for, statement_of
from freshviews.engine.relations import Relation, Relations
from freshviews.engine.tables.base_table import BaseTable
from freshviews.engine.tables.foreign_keys import Link, links_of
from freshviews.engine.tables.growing import store_again
from freshviews.engine.tables.table_state import TableState
from freshviews.engine.views.maintained import MaintainedView
from freshviews.engine.views.view_state import ViewState
from freshviews.errors import CatalogError, NameProblem, PlanError
from freshviews.kernel.machine.beside import reporter
from freshviews.kernel.memory.collection import no_collection
from freshviews.plan.crown.tree_choice import NAMED
from freshviews.sql.statements.sql_script import parse_script
from freshviews.types.dictionary import Dictionary


def _fill_every_one(view: ViewState, relations: Relations) -> bool:
    return False


class Draft:
    """``whole`` guards each step that must not be interrupted; ``everything`` as of ``Relations.connect``.

    ``measured``: if nothing declares the updates of a new view, its join tree is chosen by the updates that its tables
    have had; ``chosen`` has the statements that repeat this choice. ``memory`` is checked before each step; None when
    relations are restored.
    """

    def __init__(
        self,
        relations: Relations,
        dictionary: Dictionary,
        whole: Callable[[], AbstractContextManager[None]],
        everything: bool,
        measured: bool = False,
        memory: FreeMemory | None = None,
        threads: int = 1,
    ) -> None:
        self._memory = memory
        self._threads = threads
        self._measured = measured
        self._chosen: dict[str, str] = {}
        self._everything = everything
        self._dictionary = dictionary
        self._whole = whole
        self._tables = dict(relations.tables)
        self._views = dict(relations.views)
        self._plain = dict(relations.plain)
        self._comments = dict(relations.comments)
        self._functions = dict(relations.functions)
        self._timezone = relations.timezone
        self._count = relations.made
        self._fresh: list[Relation] = []
        self._dropped: list[Relation] = []
        self._altered: dict[str, ViewState] = {}
        self._grown: dict[str, TableState] = {}

    @contextmanager
    def _step(self, rows: int) -> Iterator[None]:
        """An uninterrupted step that stores ``rows``. Raises OutOfMemory before it begins if they do not fit."""
        with self._whole():
            reason = self._memory.lacking(rows, self._held) if self._memory is not None and rows else None
            if reason is not None:
                raise lacks_memory(reason, "nothing has changed")
            yield

    def _held(self) -> Held:
        everything = {id(one): one for one in (*self._tables.values(), *self._views.values(), *self._fresh)}
        return held_by([*everything.values()], self._dictionary)

    @property
    def relations(self) -> Relations:
        """The relations so far; read-only."""
        return Relations(
            *(self._tables, self._views, self._count),
            plain=self._plain,
            comments=self._comments,
            functions=self._functions,
            timezone=self._timezone,
        )

    @property
    def chosen(self) -> list[str]:
        """Statements that name the measured updates of views that still exist."""
        kept = {key: dict(view.definition.properties).get(NAMED) for key, view in self._views.items()}
        made = [(key, updates) for key, updates in self._chosen.items() if kept.get(key) == updates]
        return [statement_of(self._views[key].name, updates) for key, updates in made]

    @room()
    @no_collection()
    def run(self, statements: Iterable[Statement]) -> None:
        """Make and drop relations by statements. Raises CatalogError, PlanError, EvaluationError, OutOfMemory."""
        for statement in statements:
            try:
                self._run(statement)
            except RecursionError:
                name = statement.view.name if isinstance(statement, ViewDefs | AlterView) else statement.name
                raise PlanError(f"view {name} cannot be planned: {TOO_DEEP}") from None

    def _run(self, statement: Statement) -> None:
        if isinstance(statement, TableDef):
            self._count += 1
            self.make_table(statement, self._count)
        elif isinstance(statement, ViewDefs):
            for view in statement.views:
                self.make_view(self._measured_view(view) if self._measured else view)
        elif isinstance(statement, PlainView):
            self._plain[statement.name.lower()] = statement
        elif isinstance(statement, AlterView):
            self.alter_view(statement.view)
        elif isinstance(statement, AlterTable):
            self.alter_table(statement)
        elif isinstance(statement, Comment):
            self._comments = commented(self._comments, statement)
        elif isinstance(statement, FunctionDef | DropFunction):
            self._functions = with_function(self._functions, statement)
        elif isinstance(statement, SetTimeZone):
            self._timezone = statement.zone
        else:
            self._drop(statement)

    def _drop(self, statement: DropTable | DropView) -> None:
        self._comments = without_comments(self._comments, statement.name)
        if isinstance(statement, DropTable):
            self._dropped.append(self._tables.pop(statement.name.lower()))
            if statement.name.lower() in self._grown:
                self._dropped.append(self._grown.pop(statement.name.lower()))
        elif statement.name.lower() in self._plain:
            del self._plain[statement.name.lower()]
        else:
            for name in (statement.name, *statement.internal):
                self._dropped.append(self._views.pop(name.lower()))
                if name.lower() in self._altered:
                    self._dropped.append(self._altered.pop(name.lower()))

    def replay(
        self,
        scripts: Iterable[str],
        load: Callable[[Relations], None],
        restore: Callable[[ViewState, Relations], bool],
    ) -> None:
        """Make the relations that exist after all scripts; see ``remake``."""
        catalog = self.relations.catalog
        numbers: dict[str, int] = {}
        for script in scripts:
            for statement in parse_script(script, catalog):
                catalog = catalog.after(statement)
                if isinstance(statement, TableDef):
                    self._count += 1
                    numbers[statement.name] = self._count
        self.remake(catalog, numbers, load, restore)

    @room()
    @no_collection()
    def remake(
        self,
        catalog: Catalog,
        numbers: Mapping[str, int],
        load: Callable[[Relations], None],
        restore: Callable[[ViewState, Relations], bool],
    ) -> None:
        """Make the relations of a catalog, whose tables have these numbers.

        ``load`` loads the rows of tables before the views are made. ``restore`` restores the state of a view, or
        returns False; then the view is backfilled.
        """
        for table in catalog.tables.values():
            self.make_table(table, numbers[table.name])
        self._plain = {view.name.lower(): view for view in catalog.plain.values()}
        self._comments = dict(catalog.comments)
        self._functions = dict(catalog.functions)
        self._timezone = catalog.timezone
        load(self.relations)
        for view in catalog.views.values():
            self.make_view(view, restore)

    def make_table(self, definition: TableDef, number: int) -> None:
        """Make an empty table."""
        with self._whole():
            stored = None if definition.trusted else BaseTable(definition)
            encoder = TableEncoder(definition, self._dictionary)
            table = TableState(definition, number, encoder, self._decoder(definition), stored)
            self._fresh.append(table)
            self._tables[definition.name.lower()] = table
            table.foreign = self._links(table)

    def _links(self, table: TableState) -> tuple[Link, ...]:
        """The foreign keys of a table, between the stored rows of this draft."""
        if table.stored is None:
            return ()
        parents = {key.table.lower() for key in table.definition.foreign_keys}
        known = {name: (self._tables[name].definition, self._tables[name].stored) for name in parents}
        return tuple(links_of(table.definition, table.stored, known))

    def alter_table(self, statement: AlterTable) -> None:
        """Replace a table by one with further columns and its rows."""
        name = statement.name.lower()
        old = self._tables[name]
        has_rows = old.written if old.stored is None else old.stored.rows > 0
        if statement.place is not None and has_rows:
            added = statement.table.columns[-statement.added :]
            column = next(column for column in added if not column.may_be_absent)
            raise NameProblem(
                f"table {old.name}: the stored rows have no value for the NOT NULL column {column.name}; give the "
                "column a DEFAULT, or leave NOT NULL out",
                *statement.place,
            )
        self.make_table(statement.table, old.number)
        new = self._tables[name]
        # Later statements ask whether a trusted table has had rows.
        new.had_rows, new.counted, new.seconds = old.had_rows, old.counted, old.seconds
        rows = 0 if old.stored is None else old.stored.rows
        store_again(old, new, partial(self._step, min(rows, ROWS)))
        if name in self._grown:
            self._dropped.append(old)
        self._grown.setdefault(name, old)

    def make_view(
        self, definition: ViewDef, restore: Callable[[ViewState, Relations], bool] = _fill_every_one
    ) -> None:
        """Plan and compile a view, and backfill it unless ``restore`` restores its state."""
        reporter().subject = definition.name.split("#")[0]
        inputs: dict[str, TableDef | ViewDef] = {}
        for name in definition.inputs:
            source = self.relations.get(name)
            assert source is not None
            if not source.is_stored and isinstance(source, TableState) and source.written:
                raise CatalogError(
                    f"view {definition.name.split('#')[0]}: the rows of the trusted table {source.name} are not "
                    "stored; create the view before the first row, or DROP the table and insert its rows again"
                )
            inputs[name] = source.definition
            # A cell may read such a table, because it is loaded again after a failure.
            spoiling = [ring.label for ring in definition.rings if not ring.keeps_modulo and self._measured]
            if spoiling and not source.is_stored and isinstance(source, TableState):
                raise CatalogError(
                    f"view {definition.name.split('#')[0]}: after an overflow, ring {spoiling[0]} needs the rows of "
                    f"the trusted table {source.name}; leave freshviews.trusted out of the table"
                )
        with self._whole():
            maintained = MaintainedView(definition, inputs, self._dictionary)
            view = ViewState(definition, maintained, self._decoder(definition))
            self._fresh.append(view)
            maintained.prepare()
        if not restore(view, self.relations):
            rows = int(sum(input_rows(view, self.relations).values()))
            fill(view, self.relations, partial(self._step, min(rows, ROWS)), at_once=True, threads=self._threads)
            if view.maintained.may_fail_in_output:
                # If an output had no value, no later batch could replace that row.
                for _ in view.batches(ROWS):
                    pass
        self._views[definition.name.lower()] = view

    def alter_view(self, definition: ViewDef) -> None:
        """Replace a view by one with the same rows, planned and backfilled again."""
        name = definition.name.lower()
        old = self._views[name]
        self.make_view(definition)
        if name in self._altered:
            self._dropped.append(old)
        self._altered.setdefault(name, old)

    def _measured_view(self, definition: ViewDef) -> ViewDef:
        """The view, with a property of the updates that its tables have had, if that makes its join tree cheaper."""
        named = NAMED in dict(definition.properties)
        updates = None if definition.internal or named else better_for(definition, self.relations, 1.0)
        if updates is None:
            return definition
        self._chosen[definition.name.lower()] = updates
        return replace(definition, properties=(*definition.properties, (NAMED, updates)))

    def _decoder(self, definition: TableDef | ViewDef) -> Decoder:
        return Decoder(definition.columns, self._dictionary)

    def finish(self) -> Relations:
        """Connect and return the new relations, and close dropped ones after their readers have taken their rows."""
        for name, table in self._grown.items():
            new = self._tables[name]
            table.readers.drain()
            table.take_over(new)
            self._tables[name] = table
            self._dropped.append(new)
        for table in self._tables.values():
            if any(key.table.lower() in self._grown for key in table.definition.foreign_keys):
                table.foreign = self._links(table)
        for name, kept in self._altered.items():
            made = self._views[name]
            kept.readers.drain()
            kept.take_over(made)
            self._views[name] = kept
            self._dropped.append(made)
        relations = self.relations
        relations.connect(self._everything)
        for one in reversed(self._dropped):
            one.readers.drain()
            one.close()
        self._fresh.clear()
        return relations

    def abandon(self) -> None:
        """Free the relations that were made; does nothing after ``finish``."""
        for one in reversed(self._fresh):
            one.close()
