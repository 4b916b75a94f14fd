"""The nested-loop oracle: evaluates queries, blocks and views by their definitions alone.

Rows are tuples of codes, relations count them. The oracle shares no code with strategies, programs or rings; only
scalar expressions are evaluated by the interpreter's ``freshviews.program.reference.scalars``.
"""

from __future__ import annotations

import json
import math
import operator
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_HALF_UP, Context, Decimal
from fractions import Fraction
from functools import cmp_to_key, partial, reduce
from itertools import islice, repeat
from typing import Any

from freshviews.catalog.definitions import SetTerm, ViewDef, looked_up_blocks
from freshviews.expr.nodes import Column
from freshviews.program.reference.scalars import NAN, encode, evaluate, rank
from freshviews.query.block import (
    COFACTORS,
    DISCRETE,
    RINGS,
    SCANNED,
    Block,
    DistinctAggregate,
    Fold,
    Frame,
    GatheredColumn,
    Gathering,
    Limit,
    Neighbour,
    Output,
    Result,
    SortColumn,
    argument_of_amount,
    counts_values,
    part_of,
    percentile_of,
)
from freshviews.query.grouping_sets import each
from freshviews.query.query import Aggregate, Atom, Lift, Query
from freshviews.ring import Cofactor, Real
from freshviews.types import BIGINT, DOUBLE, NULL
from freshviews.types.dictionary import Dictionary
from freshviews.types.python_aggregates import aggregate_of
from freshviews.types.values import decode_value, literal_code
from tests.ring.user_rings import AGGREGATES, PRIME, USER_RINGS

Key = tuple[int, ...]


@dataclass
class Relation:
    """A relation over Z: its columns, and the multiplicity of each row."""

    columns: tuple[str, ...]
    rows: Counter[Key] = field(default_factory=Counter)

    def add(self, row: Key, multiplicity: int) -> None:
        self.rows[row] += multiplicity
        if not self.rows[row]:
            del self.rows[row]


Database = Mapping[str, Relation]


def evaluate_query(
    query: Query, database: Database, dictionary: Dictionary | None = None
) -> dict[Key, dict[str, Any]]:
    """The components of the payload, by values of the free variables; keys with only zeros are absent."""
    groups: dict[Key, dict[str, list[tuple[int, Any]]]] = {}
    for variables, lifts, multiplicity in _derivations(query, query.atoms, database, dictionary):
        key = tuple(variables[v] for v in query.free)
        group = groups.setdefault(key, {a.name: [] for a in query.aggregates})
        for aggregate in query.aggregates:
            factors = [
                lifts[lift] if lift.atom is not None else evaluate(lift.expr, variables, dictionary)
                for lift in aggregate.lifts
            ]
            group[aggregate.name].append((multiplicity, factors))
    sums = {
        key: {a.name: _sum(a, terms[a.name]) for a in query.aggregates} for key, terms in groups.items()
    }
    return {key: payload for key, payload in sums.items() if not all(map(is_zero, payload.values()))}


Evaluated = Callable[[Query, Database, Dictionary | None], dict[Key, dict[str, Any]]]


def evaluate_frames(
    limit: Limit, frame: Frame, query: Query, database: Database, dictionary: Dictionary | None = None
) -> dict[Key, dict[str, Any]]:
    """As ``evaluate_query``, if the second atom has the rows of the frame of each row of the first one."""
    of_row, of_frame = query.atoms
    relation = database[of_row.relation]
    rows = [(values, codes) for codes, m in relation.rows.items() for _ in range(m)
            for values, _, _ in _rows_of(query, of_row, Relation(relation.columns, Counter([codes])), dictionary)]
    names = [one.variable for one in limit.order]
    place = in_order(limit.order, range(len(names)), dictionary)
    groups: dict[Key, list[tuple[dict[str, int], Key]]] = {}
    for row in sorted(rows, key=lambda row: place(tuple(row[0][name] for name in names))):
        groups.setdefault(tuple(row[0][name] for name in limit.groups), []).append(row)
    alone = replace(query, atoms=(replace(of_row, relation="@row"), replace(of_frame, relation="@frame")))
    found: dict[Key, dict[str, Any]] = {}
    for group in groups.values():
        for i, (_, codes) in enumerate(group):
            within = group[max(i + frame.low, 0) : max(i + frame.high + 1, 0)]
            here = {
                "@row": Relation(relation.columns, Counter([codes])),
                "@frame": Relation(relation.columns, Counter(other for _, other in within)),
            }
            made = evaluate_query(alone, here, dictionary)
            assert found.keys().isdisjoint(made), "rows of frames are distinct"
            found |= made
    return found


def evaluated_of(block: Block) -> Evaluated:
    """The function that evaluates the queries of a block."""
    if block.limit is not None and isinstance(block.limit.beside, Frame):
        return partial(evaluate_frames, block.limit, block.limit.beside)
    return evaluate_query


def is_zero(element: Any) -> bool:
    """True if an element of any ring is zero; elements of users' rings are tuples."""
    return element in (0, Real(), Cofactor()) or (isinstance(element, tuple) and not any(element))


def _derivations(
    query: Query, atoms: tuple[Atom, ...], database: Database, dictionary: Dictionary | None
) -> Iterator[tuple[dict[str, int], dict[Lift, int], int]]:
    """One (variables, values of the lifts inside atoms, product of multiplicities) for each choice of a row per
    atom."""
    atoms = _in_order(atoms)
    stored = [list(_rows_of(query, atom, database[atom.relation], dictionary)) for atom in atoms]
    excluded = [
        (atom.variables, {tuple(values.values()) for values, _, _ in _rows_of(query, atom, found, dictionary)})
        for atom in query.negated
        for found in [database[atom.relation]]
    ]

    def choose(
        i: int, variables: dict[str, int], lifts: dict[Lift, int], multiplicity: int
    ) -> Iterator[tuple[dict[str, int], dict[Lift, int], int]]:
        if i == len(atoms):
            if any(tuple(variables[v] for v in names) in rows for names, rows in excluded):
                return
            if all(evaluate(c, variables, dictionary) == 1 for c in query.conditions):
                yield variables, lifts, multiplicity
            return
        given, rows = atoms[i].given, stored[i]
        if given is not None:
            rows = [row for row in rows if all(variables[v] == row[0][v] for v in given)]
            rows = rows or [_default_row(query, atoms[i], variables)]
        for values, inside, times in rows:
            if all(variables.get(v, code) == code for v, code in values.items()):
                yield from choose(i + 1, {**variables, **values}, {**lifts, **inside}, multiplicity * times)

    return choose(0, {}, {}, 1)


def _in_order(atoms: tuple[Atom, ...]) -> tuple[Atom, ...]:
    """The atoms, with optional ones after those that bind their given variables."""
    order = [atom for atom in atoms if atom.given is None]
    left = [atom for atom in atoms if atom.given is not None]
    while left:
        bound = {v for atom in order for v in atom.variables}
        order.append(next(atom for atom in left if bound.issuperset(atom.given or ())))
        left.remove(order[-1])
    return tuple(order)


def _default_row(
    query: Query, atom: Atom, variables: Mapping[str, int]
) -> tuple[dict[str, int], dict[Lift, int], int]:
    """The row of an optional atom for given values without a matching row."""
    values = {v: variables[v] if v in (atom.given or ()) else NULL for v in atom.variables}
    return values, {lift: 0 for a in query.aggregates for lift in a.lifts if lift.atom == atom.name}, 1


def _rows_of(
    query: Query, atom: Atom, relation: Relation, dictionary: Dictionary | None
) -> Iterator[tuple[dict[str, int], dict[Lift, int], int]]:
    wanted = {lift for a in query.aggregates for lift in a.lifts if lift.atom == atom.name}
    for codes, multiplicity in relation.rows.items():
        row = dict(zip(relation.columns, codes, strict=True))
        if all(evaluate(f, row, dictionary) == 1 for f in atom.filters):
            values = {
                v: evaluate(c, row, dictionary) for v, c in zip(atom.variables, atom.columns, strict=True)
            }
            yield values, {lift: evaluate(lift.expr, row, dictionary) for lift in wanted}, multiplicity


def _sum(aggregate: Aggregate, terms: list[tuple[int, list[int]]]) -> Any:
    if aggregate.ring == "integer":
        total = 0
        for multiplicity, factors in terms:
            for factor in factors:
                multiplicity *= factor
            total += multiplicity
        return total
    if aggregate.ring.startswith("cofactor."):
        return _cofactor(aggregate, terms)
    if aggregate.ring != "real":
        return _of_user(aggregate, terms)
    finite, nans, positive, negative = Fraction(0), 0, 0, 0
    for multiplicity, (code,) in terms:
        value = _double(code)
        if value != value:
            nans += multiplicity
        elif value == float("inf"):
            positive += multiplicity
        elif value == float("-inf"):
            negative += multiplicity
        else:
            finite += Fraction(value) * multiplicity
    return Real(finite, nans, positive, negative)


def _cofactor(aggregate: Aggregate, terms: list[tuple[int, list[int]]]) -> Cofactor:
    """Count, sums and sums of products, by their definition."""
    unit = 1 if aggregate.ring == "cofactor.integer" else 2**64
    count, sums, products = 0, Counter[int](), Counter[tuple[int, int]]()
    for multiplicity, factors in terms:
        values = {}
        for lift, code in zip(aggregate.lifts, factors, strict=True):
            if lift.place is None:
                multiplicity *= code
            elif unit == 1:
                values[lift.place] = code
            else:
                # The nearest multiple of 1 / unit, ties away from zero.
                x = Fraction(_double(code)) * unit
                values[lift.place] = math.floor(abs(x) + Fraction(1, 2)) * (-1 if x < 0 else 1)
        count += multiplicity
        for i, x in values.items():
            sums[i] += multiplicity * x
            for j, y in values.items():
                if i <= j:
                    products[i, j] += multiplicity * x * y
    kept = [sorted((place, x) for place, x in found.items() if x) for found in (sums, products)]
    return Cofactor(count, tuple(kept[0]), tuple(kept[1]))


def _of_user(aggregate: Aggregate, terms: list[tuple[int, list[int]]]) -> tuple[int, ...]:
    """The sum of the products of lifts, by the functions as they are written: adding k times multiplies by k."""
    name = aggregate.ring.partition(".")[0]
    ring, types = USER_RINGS[name], AGGREGATES[name].arguments
    lifts = ring.lift if isinstance(ring.lift, tuple) else (ring.lift,) * len(types)
    total = (0,) * ring.words
    for multiplicity, factors in terms:
        element: Any = None
        values = [(lift.place, code) for lift, code in zip(aggregate.lifts, factors, strict=True)]
        multiplicity *= math.prod(code for place, code in values if place is None)
        for place, code in values if multiplicity else ():
            if place is not None:
                lifted = lifts[place](_double(code) if types[place].is_float else code)
                element = lifted if element is None else ring.multiply(element, lifted)  # type: ignore[misc]
        if multiplicity:
            words = (element,) if ring.words == 1 else element
            if name == "bit_xor":
                total = tuple(a ^ b for a, b in zip(total, words, strict=True)) if multiplicity % 2 else total
                continue
            added = tuple(multiplicity * word for word in words)
            total = tuple(a + b for a, b in zip(total, added, strict=True))
    # The additive groups of all rings here are integers, integers modulo a prime, or bits.
    return tuple(word % PRIME for word in total) if name == "modulo" else total


def _double(code: int) -> float:
    value: float = struct.unpack("<d", struct.pack("<q", code))[0]
    return value


def evaluate_block(block: Block, database: Database, dictionary: Dictionary | None = None) -> Counter[Key]:
    """The rows of a block, as codes of its outputs, with multiplicities; with grouping sets, the rows of each set."""
    if block.sets:
        rows = Counter[Key]()
        for one in each(block):
            rows.update(evaluate_block(one, database, dictionary))
        return rows
    evaluated = evaluated_of(block)
    if block.selection is not None:
        groups = {key: {"count": n} for key, n in selected_rows(block, database, dictionary).items()}
    else:
        groups = evaluated(block.query, database, dictionary)
    if block.kind == "global" and () not in groups:
        groups[()] = {a.name: _sum(a, []) for a in block.query.aggregates}
    if block.kind == "groups":
        groups = {key: payload for key, payload in groups.items() if payload["count"] > 0}
    if block.limit is not None and evaluated is evaluate_query:
        groups = {key: {"count": n} for key, n in first_rows(block, groups, dictionary).items() if n}
    size = len(block.query.free)
    counted = {
        d.name: counts_of(d, size, database, dictionary, evaluated) for d in block.distinct if counts_values(d.kind)
    }
    arguments = {d.name: arguments_of(d, size, database, dictionary, evaluated) for d in block.distinct}
    rows = Counter[Key]()
    for key, payload in groups.items():
        sets = {name: found.get(key, set()) for name, found in arguments.items()}
        counts = {name: found.get(key, Counter()) for name, found in counted.items()}
        values = {
            result.name: _counted(result, counts[result.components[0]], dictionary)
            if result.components[0] in counts
            else _result(result, block, payload, sets, dictionary)
            for result in block.results
        }
        row = dict(zip(block.free, key, strict=True)) | values
        if block.having is None or evaluate(block.having, row, dictionary) == 1:
            times = payload["count"] if block.kind == "bag" else 1
            rows[tuple(evaluate(o.expr, row, dictionary) for o in block.outputs)] += times
    if block.gathering is not None:
        assert dictionary is not None
        return texts_of(block.gathering, rows, dictionary)
    return Counter({row: times for row, times in rows.items() if times})


def in_order(
    columns: Sequence[SortColumn | GatheredColumn], at: Sequence[int], dictionary: Dictionary | None
) -> Callable[[Key], Any]:
    """A key for ``sorted``: ORDER BY over columns at the given places of a row."""

    def compare(a: Key, b: Key) -> int:
        for one, i in zip(columns, at, strict=True):
            x, y = a[i], b[i]
            if x != y and NULL in (x, y):
                return 1 if (x == NULL) == one.nulls_last else -1
            if x != y:
                less = rank(x, one.type, dictionary) < rank(y, one.type, dictionary)
                return -1 if less != one.descending else 1
        return 0

    return cmp_to_key(compare)


def texts_of(gathering: Gathering, rows: Counter[Key], dictionary: Dictionary) -> Counter[Key]:
    """A row for each group with its texts. ``rows``: the columns of the group, and those that the texts aggregate."""

    found = Counter[Key]()
    place = in_order(gathering.columns, range(len(gathering.columns)), dictionary)
    groups = {row[: gathering.groups] for row, times in rows.items() if times > 0}
    for group in groups | ({()} if gathering.whole else set()):
        own = {r[len(group) :]: times for r, times in rows.items() if times > 0 and r[: len(group)] == group}
        lined_up = sorted(own, key=place)
        if isinstance(gathering, Fold):
            found[(*group, _folded(gathering, [(row, own[row]) for row in lined_up], dictionary))] += 1
            continue
        if gathering.listed:
            texts = [
                _relation(gathering, [row for row in lined_up if row[0] == number], places, dictionary)
                for number, places in gathering.listed
            ]
            found[(*group, *(dictionary.encode(text) if own else NULL for text in texts))] += 1
            continue
        if gathering.separator is None:
            objects = [_object(gathering, row, own[row], dictionary) for row in lined_up]
            text = f"[{', '.join(objects)}]" if objects else None
        else:
            known = [row for row in lined_up if row[-1] != NULL]
            times = [1 if gathering.distinct else own[row] for row in known]
            values = [dictionary.decode(row[-1]) for row, n in zip(known, times, strict=True) for _ in range(n)]
            text = gathering.separator.join(values) if values else None
        found[(*group, NULL if text is None else dictionary.encode(text))] += 1
    return found


def _folded(fold: Fold, rows: Sequence[tuple[Key, int]], dictionary: Dictionary) -> int:
    """The value of a user's aggregate over rows."""
    known = [(row, times) for row, times in rows if NULL not in (row[:1] if fold.marked else row)]
    kinds = [column.type for column in fold.columns][fold.marked :]
    given = [
        ([decode_value(kind, code, dictionary) for kind, code in zip(kinds, row[fold.marked :], strict=True)], times)
        for row, times in known
    ]
    own = aggregate_of(fold.operation)
    if not given:
        return NULL
    state = own.added(None, [(values, 1 if fold.distinct else times) for values, times in given])
    return literal_code(fold.returns, own.result(state), dictionary)


def _object(gathering: Gathering, row: Key, times: int, dictionary: Dictionary) -> str:
    """The JSON object of a product of rows."""
    values = iter([_json(column, code, dictionary) for column, code in zip(gathering.columns, row, strict=True)])
    members = [f"{json.dumps(name)}: {_array(islice(values, width))}" for name, width in gathering.relations]
    members.append(f'"times": {times}')
    return f"{{{', '.join(members)}}}"


def _relation(gathering: Gathering, rows: Sequence[Key], places: Sequence[int], dictionary: Dictionary) -> str:
    """The JSON of some columns of the rows of a relation."""
    return _array(_array(_json(gathering.columns[i], row[i], dictionary) for i in places) for row in rows)


def _array(elements: Iterable[str]) -> str:
    return f"[{', '.join(elements)}]"


def _json(column: GatheredColumn, code: int, dictionary: Dictionary) -> str:
    """The JSON of a value; a decimal is a number with all its digits."""
    value = decode_value(column.type, code, dictionary)
    if isinstance(value, Decimal):
        return f"{value:f}"
    return json.dumps(value.isoformat() if hasattr(value, "isoformat") else value, ensure_ascii=False)


def first_rows(
    block: Block, groups: Mapping[Key, Mapping[str, Any]], dictionary: Dictionary | None = None
) -> Counter[Key]:
    """The rows that a LIMIT leaves, by the variables of a row: the rows at its places after all copies of a group are
    sorted, with their numbers, ranks or neighbours."""
    limit, free = block.limit, block.query.free
    assert limit is not None
    found = Counter[Key]()
    sizes = len(limit.groups)
    place = in_order(limit.order, [free.index(one.variable) for one in limit.order], dictionary)
    for group in {key[:sizes] for key in groups}:
        within = sorted((key for key in groups if key[:sizes] == group), key=place)
        lined_up = [key for key in within for _ in range(groups[key]["count"])]
        numbers = range(1, len(lined_up) + 1)
        places = list(zip(lined_up, numbers, strict=True))[limit.offset : limit.offset + limit.limit]
        if isinstance(limit.beside, Neighbour):
            for key, number in places:
                at = number - 1 + limit.beside.shift
                other = lined_up[at] if 0 <= at < len(lined_up) else None
                values = (NULL if other is None else other[free.index(own)] for own, _ in limit.beside.columns)
                found[(*key, int(other is not None), *values)] += 1
            continue
        if limit.ranks:
            places = [(key, number) for key, number in places if number == 1 or lined_up[number - 2] != key]
        found.update((*key, number) if limit.number else key for key, number in places)
    return found


def selected_rows(block: Block, database: Database, dictionary: Dictionary | None = None) -> Counter[Key]:
    """The rows of a selection by a threshold, by free variables."""
    selection, query = block.selection, block.query
    assert selection is not None

    def rows_of(name: str) -> list[tuple[dict[str, int], dict[Lift, int], int]]:
        atom = query.atom(name)
        return list(_rows_of(query, atom, database[atom.relation], dictionary))

    def group_of(row: Mapping[str, int]) -> Key:
        return tuple(row[v] for v in selection.group)

    def comes_before(one: int, other: int) -> bool:
        if one == other or NULL in (one, other):
            return one == other and selection.value == "through"
        less = rank(one, selection.type, dictionary) < rank(other, selection.type, dictionary)
        return less != selection.descending

    def value_of(row: Mapping[str, int]) -> int | None:
        if selection.value == "itself":
            return row[selection.point]
        before = [
            one
            for one in weights
            if group_of(one[0]) == group_of(row) and comes_before(one[0][selection.point], row[selection.point])
        ]
        sums = {}
        for aggregate in (a for a in query.aggregates if a.name != "count"):
            terms = [(m, [lifts[lift] for lift in aggregate.lifts]) for _, lifts, m in before]
            sums[aggregate.name] = _sum(aggregate, terms)
        return sums["weight"] if sums["number"] > 0 or not selection.nullable else None

    weights = rows_of(selection.weights) if selection.weights else []
    limits = {group_of(row): row[selection.limit] for row, _, m in rows_of(selection.limits) if m}
    found = Counter[Key]()
    for row, _, m in rows_of(selection.rows):
        value, limit = value_of(row), limits.get(group_of(row), NULL)
        if value is None or limit == NULL:
            continue
        value = -value if selection.negated else value
        if value < limit or (value == limit and not selection.strict):
            found[tuple(row[v] for v in query.free)] += m
    return Counter({key: m for key, m in found.items() if m})


def evaluate_view(view: ViewDef, database: Database, dictionary: Dictionary | None = None) -> Counter[Key]:
    """The rows of a view: those of all its blocks, combined by its set operations if it has any."""
    if view.constants:
        assert dictionary is not None
        types = [column.type for column in view.columns]
        return Counter(tuple(map(literal_code, types, row, repeat(dictionary))) for row in view.constants)
    blocks = [evaluate_block(block, database, dictionary) for block in view.blocks]
    if view.combined is not None:
        for i, counted in looked_up_blocks(view.combined).items():
            block = view.blocks[i]
            if counted and block.results:
                number = Output("number", Column(block.results[0].name, BIGINT, False))
                with_number = evaluate_block(replace(block, outputs=(*block.outputs, number)), database, dictionary)
                blocks[i] = Counter({row[:-1]: row[-1] for row in with_number})
        return _combine(view.combined, blocks)
    rows = Counter[Key]()
    for found in blocks:
        rows.update(found)
    return Counter({row: times for row, times in rows.items() if times})


def _combine(term: SetTerm, blocks: list[Counter[Key]]) -> Counter[Key]:
    if isinstance(term, int):
        return blocks[term]
    left, right = _combine(term.left, blocks), _combine(term.right, blocks)
    match term.kind:
        case "all":
            both = Counter(left)
            both.update(right)
            return Counter({row: times for row, times in both.items() if times})
        case "except_all":
            return left - right
        case "intersect_all":
            return left & right
        case "union":
            return Counter(dict.fromkeys((*left, *right), 1))
        case "except":
            return Counter({row: 1 for row in left if row not in right})
        case _:
            return Counter({row: 1 for row in left if row in right})


def arguments_of(
    distinct: DistinctAggregate,
    group: int,
    database: Database,
    dictionary: Dictionary | None = None,
    evaluated: Evaluated = evaluate_query,
) -> dict[Key, set[Key]]:
    """The distinct arguments of each group; the group is the first ``group`` free variables."""
    found: dict[Key, set[Key]] = {}
    for key in evaluated(distinct.query, database, dictionary):
        found.setdefault(key[:group], set()).add(key[group:])
    return found


def counts_of(
    distinct: DistinctAggregate,
    group: int,
    database: Database,
    dictionary: Dictionary | None = None,
    evaluated: Evaluated = evaluate_query,
) -> dict[Key, Counter[int]]:
    """How often each group has each argument."""
    found: dict[Key, Counter[int]] = {}
    for key, payload in evaluated(distinct.query, database, dictionary).items():
        found.setdefault(key[:group], Counter())[key[group]] += payload["count"]
    return found


def _counted(result: Result, counts: Counter[int], dictionary: Dictionary | None) -> int:
    """The code of a percentile or mode of values, each as often as it is counted; NULL if all counts add up to 0."""
    percentile = percentile_of(result.function)
    if not sum(counts.values()):
        return NULL
    if percentile is None:
        known = sorted((code for code in counts if counts[code]), key=lambda code: rank(code, result.type, dictionary))
        known = known[::-1] if result.function == "mode_last" else known
        return max(known, key=lambda code: max(counts[code], 0))
    codes = sorted(counts.elements(), key=lambda code: rank(code, result.type, dictionary))
    if not codes:
        return 0
    codes = codes[::-1] if percentile.descending else codes
    if percentile.function == DISCRETE:
        return codes[max(math.ceil(percentile.fraction * len(codes)), 1) - 1]
    position = percentile.fraction * (len(codes) - 1)
    low, high = math.floor(position), math.ceil(position)
    if codes[low] == codes[high]:
        return codes[low]
    x, y = _double(codes[low]), _double(codes[high])
    return encode((high - position) * x + (position - low) * y, DOUBLE)


def _result(
    result: Result,
    block: Block,
    payload: dict[str, Any],
    sets: dict[str, set[Key]],
    dictionary: Dictionary | None,
) -> int:
    """The code of a result, computed from the arguments of a distinct aggregate or from the payload."""
    name = result.components[0]
    distinct = next((d for d in block.distinct if d.name == name), None)
    if distinct is not None:
        codes = [_amount(distinct, argument, dictionary) for argument in sets[name]]
        if result.function == "count":
            return len(sets[name])
        if not codes:
            return NULL
        if result.function in SCANNED:
            return _scanned(distinct, sets[name], dictionary)
        total = _sum(Aggregate(name, distinct.ring), [(1, [code]) for code in codes])
        number = len(codes)
    elif result.function in COFACTORS:
        return _of_cofactor(result, payload[name])
    elif result.function in RINGS:
        if _part(payload, result.components[1]) == 0:
            return NULL
        return _of_element(result, block, payload[name])
    else:
        total = _part(payload, name)
        if result.function == "count":
            return int(total)
        number = _part(payload, result.components[1])
        if number == 0:
            return NULL
    if isinstance(total, Real):
        nearest = _nearest(total)
        if result.function == "sum_rest":
            finite = math.isfinite(nearest)
            return encode(_nearest(Real(total.finite - Fraction(nearest))) if finite else 0.0, DOUBLE)
        return encode(nearest if result.function == "sum" else nearest / number, DOUBLE)
    if result.function == "sum":
        return int(total)
    if result.type.is_decimal:
        shift = result.type.scale - result.argument.scale
        ratio = Context(prec=100).divide(Decimal(total).scaleb(shift), Decimal(number))
        return int(ratio.quantize(Decimal(1), ROUND_HALF_UP))
    return encode(float(total) / float(number), DOUBLE)


def _amount(distinct: DistinctAggregate, argument: Key, dictionary: Dictionary | None) -> int:
    """The amount that a sum of distinct arguments adds for one of them."""
    if distinct.amount is None:
        return argument[0]
    named = {argument_of_amount(i, BIGINT).name: code for i, code in enumerate(argument)}
    return evaluate(distinct.amount, named, dictionary)


def _of_element(result: Result, block: Block, element: tuple[int, ...]) -> int:
    """A value of an element of a user's ring."""
    (name,) = (a.ring.partition(".")[0] for a in block.query.aggregates if a.name == result.components[0])
    ring, given = USER_RINGS[name], element if len(element) > 1 else element[0]
    values = given if ring.value is None else ring.value(given)
    value = values[result.entry[0]] if isinstance(values, tuple) else values
    return encode(value, DOUBLE) if result.type.is_float else int(value)


def _part(payload: Mapping[str, Any], component: str) -> Any:
    """The component that a result reads, or a sum of a cofactor."""
    name, entry = part_of(component)
    if not entry:
        return payload[name]
    found = payload[name]
    return dict(found.sums).get(entry[0], 0) if len(entry) == 1 else dict(found.products).get(entry, 0)


def _of_cofactor(result: Result, total: Cofactor) -> int:
    """A number of a cofactor, a covariance or a correlation, exact until the last steps."""
    double = result.argument == DOUBLE
    unit = Fraction(1, 2**64) if double else Fraction(1)
    sums, products = dict(total.sums), dict(total.products)
    if result.entry == ():
        return total.count
    if total.count == 0:
        return NULL
    if result.function == "entry":
        found = sums.get(result.entry[0], 0) if len(result.entry) == 1 else products.get(result.entry, 0)
        return encode(float(found * unit ** len(result.entry)), DOUBLE) if double else int(found)

    def comoment(i: int, j: int) -> float:
        exact = total.count * products.get((i, j), 0) - sums.get(i, 0) * sums.get(j, 0)
        return float(exact * unit**2)

    i, j = result.entry
    if result.function == "correlation":
        x, y = comoment(i, i), comoment(j, j)
        return encode(comoment(i, j) / math.sqrt(x) / math.sqrt(y), DOUBLE) if x > 0 and y > 0 else NULL
    if total.count < 2:
        return NULL
    scale = 10.0**result.argument.scale if result.argument.is_decimal else 1.0
    return encode(comoment(i, j) / total.count / (total.count - 1) / scale, DOUBLE)


def _scanned(distinct: DistinctAggregate, values: set[Key], dictionary: Dictionary | None) -> int:
    """Aggregates at least one argument; of pairs, returns the value of the least or greatest pair."""
    if distinct.kind in ("bit_and", "bit_or"):
        return reduce(operator.and_ if distinct.kind == "bit_and" else operator.or_, (code for (code,) in values))

    def place(key: Key) -> list[Any]:
        kinds = distinct.arguments
        return [(c != NULL, rank(c, kind, dictionary) if c != NULL else 0) for c, kind in zip(key, kinds, strict=True)]

    return (min if distinct.kind in ("min", "min_by") else max)(values, key=place)[-1]


def _nearest(total: Real) -> float:
    up, down = total.positive, total.negative
    if total.nans or (up and down):
        return _double(NAN)
    if up or down:
        return float("inf") if up else float("-inf")
    return float(total.finite)
