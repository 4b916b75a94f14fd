"""Rules for the tests of incremental leapfrog triejoin, random edits, and the nested-loop oracle."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from freshviews.expr.nodes import Call, Column, Expr, Literal
from freshviews.program.reference.incremental_trie_join.maintenance import Delta
from freshviews.program.reference.scalars import evaluate
from freshviews.program.rule import Atom, Rule
from freshviews.types import BIGINT, BOOLEAN

Row = tuple[int, ...]
Edits = dict[str, dict[Row, int]]


SIGNS = {"<": "lt", "<=": "le", "!=": "ne", "+": "add_int", "*": "mul_int", "%": "mod_int", "or": "or", "and": "and"}


def rule(order: str, *atoms: str, where: str = "") -> Rule:
    """A rule of one-letter variables: ``rule("abc", "R ab", "S bc", "!T ac", where="a < c, a != b")``."""
    made = []
    for text in atoms:
        relation, variables = text.removeprefix("!").split()
        made.append(Atom(relation, tuple(variables), negated=text.startswith("!")))
    return Rule(tuple(order), tuple(made), tuple(map(condition, filter(None, where.split(", ")))))


def condition(text: str) -> Expr:
    """``a < c`` of two variables, or with brackets around nested terms: ``( a + b ) < ( c * 2 )``."""
    rest = text.split()

    def operand() -> Expr:
        token = rest.pop(0)
        if token == "(":
            found = whole()
            assert rest.pop(0) == ")"
            return found
        return Literal(int(token), BIGINT) if token.isdigit() else Column(token, BIGINT, False)

    def whole() -> Call:
        left, sign, right = operand(), SIGNS[rest.pop(0)], operand()
        return Call(sign, (left, right), BIGINT if "int" in sign else BOOLEAN, False)

    return whole()


RULES = {
    "two sets": rule("x", "A x", "B x"),
    "three sets": rule("x", "A x", "B x", "C x"),
    "three sets below another": rule("ax", "D a", "A x", "B x", "C x"),
    "path": rule("abc", "R ab", "S bc"),
    "star": rule("abcd", "R ab", "S ac", "T ad"),
    "triangle": rule("abc", "R ab", "S bc", "T ca"),
    "triangle of one relation": rule("abc", "R ab", "R bc", "R ca"),
    "triangle with its corners": rule("abc", "R ab", "S bc", "T ac", "U a", "V c"),
    "Loomis-Whitney": rule("abcd", "R abc", "S bcd", "T abd", "U acd"),
    "cycle of four": rule("abcd", "R ab", "S bc", "T cd", "U da"),
    "two cycles": rule("abcd", "R ab", "S bc", "T ac", "U cd", "V da"),
    "paper": rule("abc", "E ac", "F ab", "G b"),
    "negated": rule("abc", "R ab", "S bc", "!T ac", "!U b"),
    "negated prefix": rule("ab", "R ab", "S b", "!T ab"),
    "negated set": rule("x", "A x", "!B x"),
    "negated sets": rule("x", "A x", "B x", "!C x", "!D x"),
    "negated sets below another": rule("ax", "D a", "A x", "B ax", "!C x", "!E xa"),
    "negated reversed": rule("abc", "R ab", "R bc", "!R ca", "!R ba"),
    "compared": rule("abc", "R ab", "S bc", "T ac", where="a < c"),
    "compared in a cycle": rule("abcd", "R ab", "R bc", "R cd", "R da", where="a < c, b != d, a <= d"),
    "computed": rule("abc", "R ab", "S bc", "T ac", where="( a + b ) < ( c * 2 ), ( a < c ) or ( b != 1 )"),
    "computed and negated": rule(
        "abcd", "R ab", "R bc", "R cd", "!R da",
        where="( ( a + b ) != c ) and ( b <= ( c + 2 ) ), ( a + d ) != ( b + c )",
    ),
    "negated and compared": rule("abc", "R ab", "S bc", "!T ac", "!U bc", where="a != c, b <= c"),
}


def arities(one: Rule) -> dict[str, int]:
    """Relations of a rule and their numbers of columns."""
    return {atom.relation: len(atom.variables) for atom in one.atoms}


def shuffled(one: Rule, choices: random.Random) -> Rule:
    """The rule in some order of its variables."""
    order = list(one.order)
    choices.shuffle(order)
    return replace(one, order=tuple(order))


@dataclass
class Relations:
    """Multiplicities of rows by relation, and edits after which none is negative."""

    rule: Rule
    rows: dict[str, dict[Row, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows = {name: {} for name in arities(self.rule)}

    def some_edits(self, choices: random.Random, codes: int, count: int, several: bool = False) -> Edits:
        """Edits of rows with codes below a number; ``several``: multiplicities may exceed 1."""
        edits: Edits = {name: {} for name in self.rows}
        for _ in range(count):
            name = choices.choice(sorted(self.rows))
            there = sorted(self.rows[name])
            if there and choices.random() < 0.45:
                row = choices.choice(there)
            else:
                row = tuple(choices.randrange(codes) for _ in range(arities(self.rule)[name]))
            if row in edits[name]:
                continue
            held = self.rows[name].get(row, 0)
            if several:
                edits[name][row] = choices.choice([1, 2, -held] if held else [1, 2])
            else:
                edits[name][row] = -1 if held else 1
        return edits

    def apply(self, edits: Edits) -> int:
        """Apply edits; returns how many rows they change."""
        for name, more in edits.items():
            for row, m in more.items():
                self.rows[name][row] = self.rows[name].get(row, 0) + m
                if not self.rows[name][row]:
                    del self.rows[name][row]
        return sum(m != 0 for more in edits.values() for m in more.values())

    def derivations(self) -> dict[Row, int]:
        """The derivations of a rule, by nested loops over the rows."""
        found: dict[Row, int] = {}
        for codes, m in self._join([atom for atom in self.rule.atoms if not atom.negated], {}):
            negated = (atom for atom in self.rule.atoms if atom.negated)
            if any(tuple(codes[v] for v in atom.variables) in self.rows[atom.relation] for atom in negated):
                continue
            if all(evaluate(condition, codes) == 1 for condition in self.rule.conditions):
                found[tuple(codes[v] for v in self.rule.order)] = m
        return found

    def _join(self, atoms: list[Atom], codes: dict[str, int]) -> Iterator[tuple[dict[str, int], int]]:
        if not atoms:
            yield codes, 1
            return
        atom, *rest = atoms
        for row, m in self.rows[atom.relation].items():
            if all(codes.get(v, code) == code for v, code in zip(atom.variables, row, strict=True)):
                for joined, times in self._join(rest, {**codes, **dict(zip(atom.variables, row, strict=True))}):
                    yield joined, m * times


def taken_in(held: dict[Row, int], delta: Delta) -> dict[Row, int]:
    """The derivations after a delta, which may erase only existing ones."""
    after = dict(held)
    for row, m in delta.erased:
        assert after.pop(row, None) == m, f"{row} is erased {m} times"
    for row, m in delta.inserted:
        assert row not in after, f"{row} is inserted again"
        after[row] = m
    return after
