"""Checks rules, groups them by the view that they define, and orders the views: each after the views that it reads."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from freshviews.catalog.catalog import Catalog, unknown
from freshviews.catalog.definitions import SetOperation, TableDef, ViewDef
from freshviews.catalog.matrices import MATRICES, columns_of
from freshviews.catalog.rings import aggregate_over, aggregates_over
from freshviews.errors import RuleError
from freshviews.records import dataclass
from freshviews.rules.syntax import (
    Aggregate,
    Atom,
    Comparison,
    Place,
    Plain,
    Rule,
    Term,
    Variable,
    terms_of,
    variables_in,
)

PROVENANCE, TEXT = "provenance", "string_agg"
"""Aggregates of the rows of a body, and with ORDER BY."""

ONE, TWO, MANY = ("x",), ("x", "y"), ("x", "y", "...")
FUNCTIONS: dict[str, tuple[str, ...]] = {
    "count": (),
    PROVENANCE: (),
    **dict.fromkeys(("sum", "avg", "min", "max", "bit_and", "bit_or", "bool_and", "bool_or", "any_value"), ONE),
    **dict.fromkeys(("variance", "var_samp", "var_pop", "stddev", "stddev_samp", "stddev_pop"), ONE),
    **dict.fromkeys(("min_by", "max_by", "covar_pop", "covar_samp", "corr", "regr_slope", "regr_intercept"), TWO),
    **dict.fromkeys(("regr_count", "regr_avgx", "regr_avgy", "regr_sxx", "regr_syy", "regr_sxy", "regr_r2"), TWO),
    **dict.fromkeys(MATRICES, MANY),
    TEXT: ("x", "', '"),
}
"""The arguments of each aggregate, by name; ``count`` may have one, and the separator of a text is optional. Registered
rings are added to these."""


@dataclass(frozen=True)
class Known:
    """A relation that a body may name: its columns, and its unique column sets."""

    name: str
    columns: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Definition:
    """All rules of a head. ``functional``: the other columns determine the last one, as in ``f[x] = y``."""

    name: str
    columns: tuple[str, ...]
    rules: tuple[Rule, ...]
    functional: bool = False

    @property
    def shown(self) -> tuple[str, ...]:
        """The columns of the view: a column of the head becomes several if its aggregate has several values."""
        made = {one.name: one for one in self.rules[0].aggregates}
        return tuple(name for column in self.columns for name in _values(column, made.get(column)))


def fault(place: Place, message: str) -> RuleError:
    return RuleError(message, place.line, place.column)


def definitions_of(rules: tuple[Rule, ...], catalog: Catalog) -> tuple[tuple[Definition, ...], dict[str, Known]]:
    """Return the heads in order, and the relations that their bodies may name. Raises RuleError with line and column.
    """
    heads: dict[str, list[Rule]] = {}
    for rule in rules:
        heads.setdefault(rule.head.relation.lower(), []).append(rule)
    made = {name: _definition(tuple(group), catalog) for name, group in heads.items()}
    reads = {name: [a for rule in one.rules for a in _atoms(rule)] for name, one in made.items()}
    graph = {name: sorted({a.relation.lower() for a in atoms} & made.keys()) for name, atoms in reads.items()}
    try:
        order = tuple(TopologicalSorter(graph).static_order())
    except CycleError as cycle:
        names = [made[name].name for name in cycle.args[1][::-1]]
        inside = {name.lower() for name in names}
        within = [a for name, atoms in reads.items() if name in inside for a in atoms]
        first = next(a for a in within if a.relation.lower() in inside)
        raise fault(
            first.place,
            f"recursion is not supported: {' reads '.join(names)}; write a fixed number of steps, as in two(a, c) <- "
            "r(a, b), r(b, c).",
        ) from None
    there: list[TableDef | ViewDef] = [*catalog.tables.values(), *catalog.views.values()]
    known = {one.name.lower(): _known(one) for one in there if _is_visible(one)}
    known |= {name: Known(one.name, one.shown, (_key(one),)) for name, one in made.items()}
    for atoms in reads.values():
        for atom in atoms:
            _check_atom(atom, known)
    return tuple(made[name] for name in order), known


def _is_visible(one: TableDef | ViewDef) -> bool:
    return isinstance(one, TableDef) or not one.internal


def _key(definition: Definition) -> tuple[str, ...]:
    if definition.functional:
        return definition.columns[:-1]
    named = {a.name for a in definition.rules[0].aggregates}
    return tuple(c for c in definition.columns if c not in named)


def _values(column: str, aggregate: Aggregate | None) -> list[str]:
    """The columns of a view for a column of the head."""
    if aggregate is None:
        return [column]
    function = aggregate.function.lower()
    if function in MATRICES:
        names = [one.name if isinstance(one, Variable) else None for one in aggregate.arguments]
        return [f"{column}_{name}" for name in columns_of(function, names, aggregate.categories)]
    ring = aggregate_over(function)
    if ring is None or ring.is_single:
        return [column]
    return [f"{column}_{name}" for name, _ in ring.results]


def _known(relation: TableDef | ViewDef) -> Known:
    columns = tuple(column.name for column in relation.columns)
    if isinstance(relation, TableDef):
        return Known(relation.name, columns, () if relation.trusted else relation.keys)
    if _is_set(relation):
        return Known(relation.name, columns, (columns,))
    return Known(relation.name, columns)


def _is_set(view: ViewDef) -> bool:
    """True if the definition of a view proves that each row occurs once."""
    if isinstance(view.combined, SetOperation):
        return view.combined.kind in ("union", "except", "intersect")
    (block, *more) = view.blocks
    shown = {str(output.expr) for output in block.outputs}
    return not more and (block.kind == "global" or (block.kind == "groups" and shown.issuperset(block.free)))


def _atoms(rule: Rule) -> list[Atom]:
    return [one for conjunction in rule.conjunctions for one in conjunction if isinstance(one, Atom)]


def _definition(rules: tuple[Rule, ...], catalog: Catalog) -> Definition:
    first = rules[0].head
    known = catalog.relation(first.relation)
    if isinstance(known, TableDef):
        raise fault(first.place, f"{known.name} is a table, which no rule can define; give the head another name")
    if known is not None:
        raise fault(
            first.place, f"view {known.name} exists already; DROP the view, then give all rules of the head at once"
        )
    for rule in rules:
        _check_head(rule, first)
        if rule.aggregates and len(rules) > 1:
            raise fault(
                rules[1].head.place,
                f"{first.relation} has aggregates and must have only one rule; write all bodies in this rule, "
                "separated by ';'",
            )
    return Definition(first.relation, tuple(v.name for v in _head_variables(rules[0])), rules, first.functional)


def _head_variables(rule: Rule) -> list[Variable]:
    return [one for one in rule.head.arguments if isinstance(one, Variable)]


def _check_head(rule: Rule, first: Atom) -> None:
    head = rule.head
    if len(head.arguments) != len(first.arguments):
        raise fault(
            head.place,
            f"{head.relation} has {len(first.arguments)} columns in its first rule, but {len(head.arguments)} here; "
            "write equally many in all rules",
        )
    if head.functional != first.functional:
        raise fault(
            head.place,
            f"one rule of {head.relation} has a value, as f[x] = y; write all rules of {head.relation} with a value",
        )
    if head.functional and any(a.name != _head_variables(rule)[-1].name for a in rule.aggregates):
        raise fault(
            head.place, f"the value of {head.relation} must be the result of its aggregate; write the groups in [ ]"
        )
    if not head.arguments:
        raise fault(head.place, f"{head.relation}() has no column; name a variable, or count: agg<<n = count()>>")
    names: set[str] = set()
    for variable in _head_variables(rule):
        if variable.name.lower() in names:
            message = f"{variable.name} is given twice in the head; use a second variable, equal to it"
            raise fault(variable.place, message)
        names.add(variable.name.lower())
    given = {a.name for a in rule.aggregates}
    used = {v.name for c in rule.conjunctions for literal in c for t in terms_of(literal) for v in variables_in(t)}
    for one in rule.aggregates:
        _check_call(rule, one)
        if one.name in used:
            raise fault(one.place, f"{one.name} is the result of {one.function}, and cannot be used in the body")
        if one.name not in {v.name for v in _head_variables(rule)}:
            raise fault(
                one.place, f"{one.name} is not in the head; add {one.name} to the head, or leave the aggregate out"
            )
        if [a.name for a in rule.aggregates].count(one.name) > 1:
            raise fault(one.place, f"two aggregates have the result {one.name}; rename one result")
    _check_values(rule)
    for conjunction in rule.conjunctions:
        _check_conjunction(rule, conjunction, given)


def _check_values(rule: Rule) -> None:
    """The columns of an aggregate of several values have names that no other column has."""
    made = {one.name: one for one in rule.aggregates}
    seen: set[str] = set()
    for variable in _head_variables(rule):
        for name in _values(variable.name, made.get(variable.name)):
            if name.lower() in seen:
                raise fault(variable.place, f"{name} is the name of two columns of the view; rename {variable.name}")
            seen.add(name.lower())


def _check_call(rule: Rule, one: Aggregate) -> None:
    """Check the name of an aggregate, its arguments, and the requirements of PROVENANCE on the rule."""
    function, given = one.function.lower(), len(one.arguments)
    ring = aggregate_over(function)
    if ring is not None:
        wanted = tuple(f"x{i}" for i in range(1, len(ring.arguments) + 1))
        if given != len(wanted):
            types = ", ".join(map(str, ring.arguments))
            several = f"{len(wanted)} argument{'s' * (len(wanted) > 1)}"
            raise fault(one.place, f"{one.function} takes {several} ({types}), as {one.function}({', '.join(wanted)})")
    elif function not in FUNCTIONS:
        known = ", ".join(sorted((*FUNCTIONS, *aggregates_over())))
        raise fault(one.place, f"there is no aggregate {one.function}; the aggregates are {known}")
    else:
        wanted = FUNCTIONS[function]
        least = {"count": 0, TEXT: 1, "corr_matrix": 2}.get(function, 1 if wanted == MANY else len(wanted))
        most = {"count": 1}.get(function, given if wanted == MANY else len(wanted))
        if not least <= given <= most:
            needs = {"count": "takes one argument, or none", TEXT: "takes a term and a separator"}.get(
                function, ("takes no argument", "needs an argument", "needs two arguments")[least]
            )
            shown = ", ".join(wanted or ("x",) if function == "count" else wanted)
            raise fault(one.place, f"{one.function} {needs}, as {one.function}({shown})")
    if one.order and function != TEXT:
        raise fault(one.order[0].place, f"ORDER BY is accepted only in {TEXT}; leave ORDER BY out of {one.function}")
    if one.categories and function != "cofactor":
        raise fault(one.place, f"category(...) is accepted only in cofactor; leave category out of {one.function}")
    if function == PROVENANCE:
        _check_provenance(rule, one)


def _check_provenance(rule: Rule, one: Aggregate) -> None:
    """PROVENANCE lists all rows of the relations: a projection or a repeated row is another derivation."""
    if len(rule.aggregates) > 1:
        other = next(a for a in rule.aggregates if a is not one)
        raise fault(
            other.place,
            f"{PROVENANCE} must be the only aggregate of a rule; write another rule for {other.function}",
        )
    first, *more = rule.conjunctions
    if more:
        raise fault(
            one.place, f"{PROVENANCE} needs a rule with one body; write each body as a rule with a head of its own"
        )
    for literal in first:
        if isinstance(literal, Atom) and literal.negated:
            raise fault(
                literal.place,
                f"{PROVENANCE} has no rows for a negated atom; leave the atom out, or move the negated atom into "
                "another rule and read the head of this rule",
            )


def _check_conjunction(rule: Rule, conjunction: Plain, given: set[str]) -> None:
    if not any(isinstance(one, Atom) and not one.negated for one in conjunction):
        raise fault(
            rule.head.place, f"a body of {rule.head.relation} names no relation; insert rows of constants instead"
        )
    bound = bound_in(conjunction)
    for literal in conjunction:
        for term in terms_of(literal):
            for variable in variables_in(term):
                if variable.name not in bound:
                    where = "is only in a negated atom" if isinstance(literal, Atom) else "has no value"
                    raise fault(
                        variable.place,
                        f"{variable.name} {where}; add {variable.name} to an atom without !, "
                        f"{'or write _ for any value' if isinstance(literal, Atom) else 'or set it equal to a term'}",
                    )
    arguments = [term for one in rule.aggregates for term in one.terms]
    for variable in (*_head_variables(rule), *(v for one in arguments for v in variables_in(one))):
        if variable.name not in bound and variable.name not in given:
            raise fault(variable.place, f"{variable.name} is in no atom of the body; add {variable.name} to an atom")


def bound_in(conjunction: Plain) -> set[str]:
    """The variables bound by atoms, or equal to a term over bound variables."""
    bound: set[str] = set()
    for one in conjunction:
        if isinstance(one, Atom) and not one.negated:
            bound.update(t.name for t in one.arguments if isinstance(t, Variable))
    settled = False
    while not settled:
        settled = True
        for comparison in conjunction:
            found = assignment(comparison, bound)
            if found is not None:
                bound.add(found[0].name)
                settled = False
    return bound


def assignment(literal: Atom | Comparison, bound: set[str]) -> tuple[Variable, Term] | None:
    """The variable that a comparison binds, and its term."""
    if isinstance(literal, Comparison) and literal.sign == "=":
        for one, other in ((literal.left, literal.right), (literal.right, literal.left)):
            known = all(v.name in bound for v in variables_in(other))
            if isinstance(one, Variable) and one.name not in bound and known:
                return one, other
    return None


def _check_atom(atom: Atom, known: dict[str, Known]) -> None:
    relation = known.get(atom.relation.lower())
    if relation is None:
        names = [one.name for one in known.values()]
        raise fault(atom.place, unknown("table, view or head", atom.relation, names))
    if len(atom.arguments) != len(relation.columns):
        raise fault(
            atom.place,
            f"{relation.name} has {len(relation.columns)} columns ({', '.join(relation.columns)}), not "
            f"{len(atom.arguments)}; write _ for a column that does not matter",
        )
