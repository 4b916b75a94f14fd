"""Writes rules as CREATE statements of SQL that define the same views."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field

from freshviews.catalog.catalog import Catalog
from freshviews.catalog.nesting import TOO_DEEP, room
from freshviews.errors import RuleError, SqlError
from freshviews.records import dataclass
from freshviews.rules.definitions import PROVENANCE, Definition, Known, assignment, definitions_of
from freshviews.rules.parse import parse_rules
from freshviews.rules.syntax import (
    Anything,
    Atom,
    Comparison,
    Constant,
    Operation,
    Place,
    Plain,
    Rule,
    Term,
    Variable,
    terms_of,
    variables_in,
)

MULTIPLICITY = "times"
"""The multiplicity in a provenance, next to the aliases of the relations."""

Piece = tuple[str, Place]
Sql = list[Piece]
"""Text, and the place in the rules of each piece of it."""

KEEPS_NEGATED = "incremental_trie_join"
"""The strategy whose traces support negated atoms."""


@dataclass(frozen=True)
class Reads:
    """The relations that rules may read, and whether negated atoms become NOT EXISTS."""

    known: Mapping[str, Known]
    absent: bool


@dataclass(frozen=True)
class RuleScript:
    """``text``: CREATE statements. ``places``: where each piece begins in it, and its place in the rules."""

    text: str
    places: tuple[tuple[int, Place], ...]

    def in_rules(self, error: SqlError) -> RuleError:
        """Map an error in the text to its place in the rules."""
        message = str(error)
        if not error.line:
            return RuleError(message)
        lines = self.text.split("\n")
        offset = sum(len(line) + 1 for line in lines[: error.line - 1]) + error.column - 1
        place = [place for start, place in self.places if start <= offset][-1]
        return RuleError(message.removeprefix(f"line {error.line}, column {error.column}: "), place.line, place.column)


@room()
def script_of(text: str, catalog: Catalog, properties: Mapping[str, str] | None = None) -> RuleScript:
    """Return the CREATE statements of the views that a text of rules defines, each with these properties.

    Raises RuleError with line and column.

    Relations of rules are sets, so a table that may have equal rows is read with DISTINCT. A conjunction is a join.
    UNION combines the rules of a head, and the branches of a disjunction. A negated atom removes bindings by EXCEPT, or
    by NOT EXISTS if the view's strategy supports negated atoms. An aggregate ranges over the distinct bindings of the
    variables other than ``_``. If the body has no binding, the head has no row, even if it aggregates without groups.
    """
    try:
        return _script_of(text, catalog, properties or {})
    except RecursionError:
        raise RuleError(TOO_DEEP) from None


def _script_of(text: str, catalog: Catalog, properties: Mapping[str, str]) -> RuleScript:
    definitions, known = definitions_of(parse_rules(text), catalog)
    reads = Reads(known, properties.get("freshviews.strategy") == KEEPS_NEGATED)
    written: list[str] = []
    places: list[tuple[int, Place]] = []
    length = 0
    for definition in definitions:
        for piece, place in _view(definition, reads, properties):
            places.append((length, place))
            written.append(piece)
            length += len(piece)
    return RuleScript("".join(written), tuple(places))


def _quoted(name: str) -> str:
    return f"`{name}`"


def _joined(parts: list[Sql], separator: str) -> Sql:
    found: Sql = []
    for i, part in enumerate(parts):
        if i and part:
            found.append((separator, part[0][1]))
        found += part
    return found


def _view(definition: Definition, reads: Reads, properties: Mapping[str, str]) -> Sql:
    head = definition.rules[0].head.place
    clause = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
    named = "" if definition.shown == definition.columns else f" ({', '.join(map(_quoted, definition.shown))})"
    properties_ = f" TBLPROPERTIES ({clause})" if clause else ""
    start = f"CREATE MATERIALIZED VIEW {_quoted(definition.name)}{named}{properties_} AS "
    if definition.rules[0].aggregates:
        body = _aggregate_rows(definition, definition.rules[0], reads)
    elif definition.functional:
        body = _function(definition, reads)
    else:
        each = [(r, conjunction, _head(definition, r)) for r in definition.rules for conjunction in r.conjunctions]
        body = _union(each, reads)
    return [(start, head), *body, (";\n", head)]


def _head(definition: Definition, rule: Rule) -> list[tuple[str, Variable]]:
    """Column and variable, in order."""
    variables = [one for one in rule.head.arguments if isinstance(one, Variable)]
    return list(zip(definition.columns, variables, strict=True))


def _select_distinct(rule: Rule, conjunction: Plain, columns: list[tuple[str, Variable]], reads: Reads) -> Sql:
    """SELECT DISTINCT of a conjunction: the given variables, under the names of columns."""
    known = reads.known
    negated = [one for one in conjunction if isinstance(one, Atom) and one.negated]
    if not negated:
        return _bindings(rule, conjunction, columns, known)
    positive = tuple(one for one in conjunction if one not in negated)
    if reads.absent and all(_compares_columns(atom, positive) for atom in negated):
        return _bindings(rule, positive, columns, known, negated)
    taken = {name for name, _ in columns}
    kept = list(columns)
    for variable in (v for atom in negated for term in atom.arguments for v in variables_in(term)):
        if variable.name not in (v.name for _, v in kept):
            name = variable.name
            while name in taken:
                name += "_"
            taken.add(name)
            kept.append((name, variable))
    remaining = _except_negated(rule, positive, negated, kept, known)
    if len(kept) == len(columns):
        return remaining
    items: list[Sql] = [[(_quoted(name), variable.place)] for name, variable in columns]
    place = rule.head.place
    return [("SELECT DISTINCT ", place), *_joined(items, ", "), (" FROM (", place), *remaining, (") AS `kept`", place)]


def _compares_columns(atom: Atom, positive: Plain) -> bool:
    """True if the arguments of a negated atom are constants and columns of positive atoms, with at least one column."""
    bound = {t.name for one in positive if isinstance(one, Atom) for t in one.arguments if isinstance(t, Variable)}
    names = [t.name for t in atom.arguments if isinstance(t, Variable)]
    plain = all(isinstance(t, Variable | Constant | Anything) for t in atom.arguments)
    return plain and bool(names) and bound.issuperset(names)


def _union(rules: list[tuple[Rule, Plain, list[tuple[str, Variable]]]], reads: Reads) -> Sql:
    """The UNION of the distinct rows of several conjunctions."""
    parts = []
    for rule, conjunction, columns in rules:
        part = _select_distinct(rule, conjunction, columns, reads)
        place = rule.head.place
        parts.append(part if len(rules) == 1 else [("(", place), *part, (")", place)])
    return _joined(parts, " UNION ")


def _except_negated(
    rule: Rule, positive: Plain, negated: list[Atom], kept: list[tuple[str, Variable]], known: Mapping[str, Known]
) -> Sql:
    """The distinct values of the kept variables for which no negated atom has a row."""
    found = _bindings(rule, positive, kept, known)
    for atom in negated:
        against = (*positive, Atom(atom.relation, atom.arguments, atom.place))
        found += [(" EXCEPT ", atom.place), *_bindings(rule, against, kept, known)]
    return found


def _bindings(
    rule: Rule,
    conjunction: Plain,
    kept: list[tuple[str, Variable]],
    known: Mapping[str, Known],
    negated: Sequence[Atom] = (),
) -> Sql:
    body = _Body(conjunction, known, sets=False)
    for atom in negated:
        body.exclude(atom)
    items: list[Sql] = [[*body.term(variable), (f" AS {_quoted(name)}", variable.place)] for name, variable in kept]
    return [("SELECT DISTINCT ", rule.head.place), *_joined(items, ", "), *body.rest()]


def _function(definition: Definition, reads: Reads) -> Sql:
    """The rows of a functional head; ONLY_VALUE checks that the last column is determined by the others."""
    place = definition.rules[0].head.place
    each = [(r, conjunction, _head(definition, r)) for r in definition.rules for conjunction in r.conjunctions]
    (_, conjunction, columns), *more = each
    if more or any(isinstance(one, Atom) and one.negated for one in conjunction):
        rest: Sql = [(" FROM (", place), *_union(each, reads), (") AS `found`", place)]
        terms: list[Sql] = [[(_quoted(name), variable.place)] for name, variable in columns]
    else:
        body = _Body(conjunction, reads.known, sets=False)
        rest, terms = body.rest(), [body.term(variable) for _, variable in columns]
    *key, value = terms
    items = [*key, [("ONLY_VALUE(", place), *value, (")", place)]]
    named = [[*item, (f" AS {_quoted(name)}", v.place)] for item, (name, v) in zip(items, columns, strict=True)]
    return _group_rows([("SELECT ", place), *_joined(named, ", "), *rest], key, place)


def _group_rows(found: Sql, groups: list[Sql], place: Place) -> Sql:
    """Rows grouped; without groups one row if there is any input."""
    if groups:
        return [*found, (" GROUP BY ", place), *_joined(groups, ", ")]
    return [*found, (" HAVING COUNT(*) > 0", place)]


def _aggregate_rows(definition: Definition, rule: Rule, reads: Reads) -> Sql:
    """The rows of a head with aggregates; such a head has one rule."""
    conjunctions = rule.conjunctions
    place = rule.head.place
    rows = any(one.function.lower() == PROVENANCE for one in rule.aggregates)
    if len(conjunctions) == 1 and not any(isinstance(one, Atom) and one.negated for one in conjunctions[0]):
        body = _Body(conjunctions[0], reads.known, sets=not rows, plain=rows)
        term, rest = body.term, body.rest()
    else:
        kept = {v.name: v for one in conjunctions[0] for t in terms_of(one) for v in variables_in(t)}
        for conjunction in conjunctions[1:]:
            here = {v.name for one in conjunction for t in terms_of(one) for v in variables_in(t)}
            kept = {name: v for name, v in kept.items() if name in here}
        columns = list(kept.items())
        parts = _union([(rule, conjunction, columns) for conjunction in conjunctions], reads)
        term = _Named().term
        rest = [(" FROM (", place), *parts, (") AS `found`", place)]
    made = {one.name: one for one in rule.aggregates}
    items: list[Sql] = []
    groups: list[Sql] = []
    for name, variable in _head(definition, rule):
        aggregate = made.get(variable.name)
        if aggregate is None:
            item = term(variable)
            groups.append(item)
        elif not aggregate.arguments:
            function = aggregate.function.upper()
            item = [(f"{function}({'*' if function == 'COUNT' else ''})", aggregate.place)]
        else:
            terms = [term(argument) for argument in aggregate.arguments]
            for i in aggregate.categories:
                terms[i] = [("CATEGORY(", aggregate.place), *terms[i], (")", aggregate.place)]
            arguments = _joined(terms, ", ")
            keys: list[Sql] = [[*term(key.term), (f" {key.direction}", key.place)] for key in aggregate.order]
            order: Sql = [(" ORDER BY ", keys[0][0][1]), *_joined(keys, ", ")] if keys else []
            item = [(f"{aggregate.function.upper()}(", aggregate.place), *arguments, *order, (")", place)]
        items.append([*item, (f" AS {_quoted(name)}", variable.place)])
    return _group_rows([("SELECT ", place), *_joined(items, ", "), *rest], groups, place)


class _Terms(ABC):
    """Terms as SQL; ``variable`` gives the SQL of a variable."""

    @abstractmethod
    def variable(self, variable: Variable) -> Sql:
        """A variable."""

    def term(self, term: Term) -> Sql:
        """The SQL of a term; an operation is in parentheses."""
        if isinstance(term, Variable):
            return self.variable(term)
        if isinstance(term, Constant):
            return [(term.sql, term.place)]
        assert isinstance(term, Operation), "_ is not an operand"
        if len(term.arguments) == 1:
            return [("(- ", term.place), *self.term(term.arguments[0]), (")", term.place)]
        left, right = map(self.term, term.arguments)
        return [("(", term.place), *left, (f" {term.sign} ", term.place), *right, (")", term.place)]


class _Named(_Terms):
    """Terms over columns that have the names of the variables."""

    def variable(self, variable: Variable) -> Sql:
        return [(_quoted(variable.name), variable.place)]


@dataclass
class _Body(_Terms):
    """A conjunction without negation, as FROM and WHERE. ``sets``: every atom has each binding once. ``plain``: aliases
    are shown to the user, and are the names of the relations if these differ."""

    conjunction: Plain
    known: Mapping[str, Known]
    sets: bool
    plain: bool = False
    values: dict[str, Sql] = field(default_factory=dict)
    sources: list[Sql] = field(default_factory=list)
    conditions: list[Sql] = field(default_factory=list)

    def __post_init__(self) -> None:
        computed: list[tuple[Sql, Term, Place]] = []
        for literal in self.conjunction:
            if isinstance(literal, Atom):
                self._atom(literal, computed)
        open_ = [one for one in self.conjunction if isinstance(one, Comparison)]
        settled = False
        while not settled:
            settled = True
            for comparison in open_:
                found = assignment(comparison, set(self.values))
                if found is not None:
                    variable, term = found
                    self.values[variable.name] = self.term(term)
                    open_.remove(comparison)
                    settled = False
                    break
        for column, term, place in computed:
            self.conditions.append([*column, (" = ", place), *self.term(term)])
        for one in open_:
            self.conditions.append([*self.term(one.left), (f" {one.sign} ", one.place), *self.term(one.right)])

    def _atom(self, atom: Atom, computed: list[tuple[Sql, Term, Place]]) -> None:
        relation = self.known[atom.relation.lower()]
        alias = self._alias(relation.name)
        used = [c for c, t in zip(relation.columns, atom.arguments, strict=True) if not isinstance(t, Anything)]
        text = _quoted(relation.name)
        if self.sets and not any(set(key) <= set(used) for key in relation.keys):
            columns = ", ".join(map(_quoted, used)) or "1 AS `one`"
            text = f"(SELECT DISTINCT {columns} FROM {text})"
        self.sources.append([(f"{text} AS {_quoted(alias)}", atom.place)])
        for column, term in zip(relation.columns, atom.arguments, strict=True):
            if isinstance(term, Anything):
                continue
            value: Sql = [(f"{_quoted(alias)}.{_quoted(column)}", term.place)]
            if isinstance(term, Variable):
                before = self.values.setdefault(term.name, value)
                if before is not value:
                    self.conditions.append([*before, (" = ", term.place), *value])
            else:
                computed.append((value, term, term.place))

    def _alias(self, relation: str) -> str:
        """The alias of the next atom. A plain one is the name of the relation, if no other atom has it."""
        names = [one.relation.lower() for one in self.conjunction if isinstance(one, Atom)]
        if self.plain and names.count(relation.lower()) == 1 and relation.lower() != MULTIPLICITY:
            return relation
        alias = f"{relation}_{len(self.sources) + 1}"
        while self.plain and alias.lower() in names:
            alias += "_"
        return alias

    def exclude(self, atom: Atom) -> None:
        """Add NOT EXISTS for a negated atom whose arguments are bound variables and constants."""
        relation = self.known[atom.relation.lower()]
        alias = f"{relation.name}_{len(self.sources) + len(self.conditions) + 1}"
        equal: list[Sql] = []
        for column, term in zip(relation.columns, atom.arguments, strict=True):
            if not isinstance(term, Anything):
                equal.append([(f"{_quoted(alias)}.{_quoted(column)} = ", term.place), *self.term(term)])
        start = f"NOT EXISTS (SELECT 1 FROM {_quoted(relation.name)} AS {_quoted(alias)} WHERE "
        self.conditions.append([(start, atom.place), *_joined(equal, " AND "), (")", atom.place)])

    def variable(self, variable: Variable) -> Sql:
        return [(text, variable.place) for text, _ in self.values[variable.name]]

    def rest(self) -> Sql:
        """FROM and WHERE."""
        place = self.sources[0][0][1]
        found: Sql = [(" FROM ", place), *_joined(self.sources, ", ")]
        if self.conditions:
            found += [(" WHERE ", place), *_joined(self.conditions, " AND ")]
        return found
