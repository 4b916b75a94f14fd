"""The views of a script as the engine gets them, including internal ones, and codes for their rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from freshviews.catalog.catalog import Catalog, ViewDefs
from freshviews.catalog.definitions import PlainView, TableDef, ViewDef
from freshviews.engine.codes.code_batch import CodeBatch
from freshviews.sql.statements.sql_script import parse_script
from freshviews.types.dictionary import Dictionary
from freshviews.types.values import decode_value, encoder_for
from tests.agreement.scenario import Row, Scenario, Update
from tests.plan.oracle import Key

Relations = dict[str, "TableDef | ViewDef"]

FACTORISED = "view_tree, factorised"
"""A view tree with a result that is not held, for the views that allow it."""


def properties_of(strategy: str) -> tuple[tuple[str, str], ...]:
    """The properties of a view under a strategy: one name, crown with the strategy of its bags, or FACTORISED."""
    if strategy == FACTORISED:
        return ("freshviews.strategy", "view_tree"), ("freshviews.result", "factorised")
    name, _, bags = strategy.partition(" over ")
    return ("freshviews.strategy", name), *((("freshviews.bag_strategy", bags),) if bags else ())


@dataclass
class Definitions:
    """Tables and views in order, with the dictionary that their strings share."""

    relations: Relations
    dictionary: Dictionary = field(default_factory=Dictionary)

    @property
    def tables(self) -> list[TableDef]:
        return [one for one in self.relations.values() if isinstance(one, TableDef)]

    @property
    def views(self) -> list[ViewDef]:
        return [one for one in self.relations.values() if isinstance(one, ViewDef)]

    def under(self, strategy: str | None) -> Definitions:
        """The same with every view under one strategy, see ``properties_of``; None is the planner's choice."""
        named = dict(properties_of(strategy)) if strategy else {}
        name = named.pop("freshviews.strategy", None)
        chosen: Relations = {
            key: replace(one, strategy=name, properties=(*one.properties, *named.items()))
            if isinstance(one, ViewDef)
            else one
            for key, one in self.relations.items()
        }
        return Definitions(chosen, self.dictionary)

    def inputs(self, view: ViewDef) -> Relations:
        """The relations that a view reads."""
        return {name: self.relations[name] for name in view.inputs}

    def key(self, relation: str, row: Row) -> Key:
        """A row as codes."""
        columns = self.relations[relation].columns
        return tuple(encoder_for(c.type, True, self.dictionary)(v) for c, v in zip(columns, row, strict=True))

    def values(self, relation: str, key: Key) -> Row:
        """The values of a row of codes."""
        columns = self.relations[relation].columns
        return tuple(decode_value(c.type, v, self.dictionary) for c, v in zip(columns, key, strict=True))

    def batch(self, relation: str, updates: tuple[Update, ...]) -> CodeBatch:
        """Updates of a table as a batch of the engine."""
        return self.code_batch(relation, [(self.key(relation, row), m) for row, m in updates])

    def code_batch(self, relation: str, updates: list[tuple[Key, int]]) -> CodeBatch:
        """Updates of a relation whose rows are codes, as a batch of the engine."""
        columns = self.relations[relation].columns
        codes = np.array([key for key, _ in updates], np.int64).reshape(len(updates), len(columns))
        return CodeBatch(
            relation,
            {c.name: codes[:, i] for i, c in enumerate(columns)},
            np.array([m for _, m in updates], np.int64),
        )


def definitions_of(scenario: Scenario) -> Definitions:
    """Parse the scenario's script."""
    relations: Relations = {}
    for statement in parse_script(scenario.script, Catalog()):
        for one in statement.views if isinstance(statement, ViewDefs) else (statement,):
            assert isinstance(one, TableDef | ViewDef | PlainView)
            if not isinstance(one, PlainView):
                relations[one.name] = one
    return Definitions(relations)
