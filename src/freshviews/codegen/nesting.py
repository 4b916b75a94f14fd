"""Functions whose blocks nest deeper than Python allows, split into several.

Python allows 20 nested loops, and 100 levels of indentation. A join of many tables nests deeper. ``split`` moves inner
statements of such a function, a loop or an ``if`` with its branches, to functions of their own. The source of any other
function stays as it is::

    for a in ...:                         for a in ...:
        for b in ...:          becomes        u = part_0(state, a, u)
            u = plus(u, ...)
                                          def part_0(state, a, u):
                                              for b in ...:
                                                  u = plus(u, ...)
                                              return u

The parameters of a part are the locals that it reads before it assigns them. It returns the locals that it assigns and
that are read outside it. A ``return`` in a part ends the calling function, too.

Generated source has one statement per line, and four blanks per level.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, count
from keyword import iskeyword

MOST_LOOPS = 20
MOST_LEVELS = 95
"""Python's limits; of the levels, a few are left for tuples and calls over several lines."""
_LOOPS = 12
_LEVELS = 48
"""Loops and levels of a function after it is split."""


_Names = tuple[list[str], frozenset[str]]
"""The reads of names, with repetitions, and the assigned names."""


@dataclass(frozen=True)
class _Line:
    """A statement, and the statements indented below it. ``first`` is its place among the lines of its function, and
    ``after`` the place that follows the last line below it."""

    text: str
    inside: tuple[_Line, ...] = ()
    first: int = 0
    after: int = 0

    @property
    def is_loop(self) -> bool:
        return self.text.startswith(("for ", "while "))

    @property
    def is_branch(self) -> bool:
        """True for a later branch of an ``if``."""
        return self.text.startswith(("elif ", "else:"))

    @cached_property
    def names(self) -> _Names:
        """The names that the line itself reads, and those that it assigns."""
        return _names(self.text)

    @cached_property
    def sure(self) -> frozenset[str]:
        """The names that the statements below the line surely assign."""
        return frozenset[str]().union(*map(_sure, _groups(self.inside)))

    def lines(self) -> Iterator[_Line]:
        """The line and all below it, in order."""
        queue = [self]
        while queue:
            line = queue.pop()
            yield line
            queue += line.inside[::-1]


class _Uses:
    """Where a function reads and assigns names, by the places of its lines."""

    def __init__(self, body: _Body) -> None:
        self._reads: dict[str, list[int]] = {}
        self._assigned: list[frozenset[str]] = []
        for place, line in enumerate(chain.from_iterable(one.lines() for one in body)):
            read, assigned = line.names
            for name in read:
                self._reads.setdefault(name, []).append(place)
            self._assigned.append(assigned)

    def assigned(self, first: int, after: int) -> frozenset[str]:
        """The names that lines from ``first`` to before ``after`` assign."""
        return frozenset[str]().union(*self._assigned[first:after])

    def is_read(self, name: str, first: int, after: int) -> bool:
        """True if a line from ``first`` to before ``after`` reads the name."""
        places = self._reads.get(name, [])
        at = bisect_left(places, first)
        return at < len(places) and places[at] < after


@dataclass(frozen=True)
class _Scope:
    """The function that lines are moved to: the locals of the one around, the places of its lines, and the names that
    it returns."""

    uses: _Uses
    locals: frozenset[str]
    first: int
    after: int
    results: frozenset[str] = frozenset()


_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_TARGETS = re.compile(r"(?:for )?([A-Za-z_]\w*(?:, [A-Za-z_]\w*)*) (?:in|=|([-+*/&|^]|//|<<|>>)=) ")
_UNUSUAL = re.compile(r"[\"'{\[\\:]|\.[A-Za-z_]|[(, ]\w+=[^=]| = |\b(?:lambda|for|in|if)\b")
"""Syntax that needs a parser: strings, attributes, named arguments, second targets, and names bound within an
expression."""


@lru_cache(maxsize=1 << 16)
def _names(text: str) -> _Names:
    """The names that a line reads, and those that it assigns. Lines may have thousands of characters, nearly always of
    the kinds that ``_plain_names`` reads."""
    found = _plain_names(text)
    return _parsed_names(text) if found is None else found


def _plain_names(text: str) -> _Names | None:
    """The names of a line, found without a parser; None if a parser is needed."""
    target = _TARGETS.match(text)
    assigned = _NAME.findall(target[1]) if target else []
    words = text[target.end() :] if target else text
    start = next((len(word) for word in ("if ", "elif ", "while ", "return ") if words.startswith(word)), 0)
    if _UNUSUAL.search(words.removesuffix(":"), start) or (text.startswith("for ") and not target):
        return None
    read = [name for name in _NAME.findall(words) if not iskeyword(name)]
    return read + assigned if target and target[2] else read, frozenset(assigned)


def _parsed_names(text: str) -> _Names:
    if text.startswith(("elif ", "else:")):
        text = "if True:" if text == "else:" else text[2:]
    read = []
    assigned = set()
    for node in ast.walk(ast.parse(f"{text} pass" if text.endswith(":") else text)):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                assigned.add(node.id)
            else:
                read.append(node.id)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            read.append(node.target.id)
    return read, frozenset(assigned)


_Body = tuple[_Line, ...]


def split(sources: Iterable[str], taken: int) -> list[str]:
    """Sources of functions, with parts of those that nest too deep before each. ``taken``: the number of the first
    part."""
    found: list[str] = []
    for source in sources:
        if not _is_deep(source):
            found.append(source)
            continue
        splitter = _Splitter(taken)
        rewritten = splitter.module(source)
        taken = splitter.number
        found += [*splitter.parts, rewritten]
    return found


def _is_deep(source: str) -> bool:
    loops: list[int] = []
    for line in source.splitlines():
        level = _level(line)
        if level > MOST_LEVELS:
            return True
        if line.endswith(":"):
            while loops and loops[-1] >= level:
                loops.pop()
            if line.lstrip().startswith(("for ", "while ")):
                loops.append(level)
                if len(loops) > MOST_LOOPS:
                    return True
    return False


def _level(line: str) -> int:
    return (len(line) - len(line.lstrip(" "))) // 4


class _Splitter:
    """Rewrites the functions of one source; ``parts`` are the sources of the functions that it made."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.parts: list[str] = []

    def module(self, source: str) -> str:
        """The source, with its functions rewritten."""
        lines = source.splitlines()
        starts = [i for i, line in enumerate(lines) if line.startswith("def ")]
        found = lines[: starts[0]]
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            found += self.function(lines[start:end])
        return "\n".join(found) + "\n"

    def function(self, lines: list[str]) -> list[str]:
        """The lines of a function, and those that follow it up to the next."""
        head, *rest = lines
        first = _after_docstring(rest)
        end = next((i for i in range(first, len(rest)) if rest[i] and not rest[i].startswith(" ")), len(rest))
        while end > first and not rest[end - 1].strip():
            end -= 1
        body = _parsed(rest[first:end])
        parameters = _parameters(head)
        uses, after = _Uses(body), body[-1].after
        scope = _Scope(uses, uses.assigned(0, after) | parameters, 0, after)
        rewritten = self.body(body, parameters, scope, 0, 1)
        return [head, *rest[:first], *_printed(rewritten, 1), *rest[end:]]

    def body(self, body: _Body, before: Set[str], scope: _Scope, loops: int, level: int) -> _Body:
        """The statements of a body, split. ``before``: the locals assigned before it."""
        found: list[_Line] = []
        known = set(before)
        for group in _groups(body):
            deep = level >= _LEVELS or (loops >= _LOOPS and group[0].is_loop)
            if deep and any(line.inside for line in group) and not _leaves(group):
                found += self.part(group, known, scope)
            else:
                for line in group:
                    inside = line.inside
                    if inside:
                        inside = self.body(inside, known | line.names[1], scope, loops + line.is_loop, level + 1)
                    found.append(_Line(line.text, inside))
            known |= _sure(group)
        return tuple(found)

    def part(self, group: _Body, known: set[str], scope: _Scope) -> _Body:
        """Make a function of a group of lines; return the lines that call it."""
        first, after = group[0].first, group[-1].after
        stored = scope.uses.assigned(first, after)
        exposed, sure = _exposed(group), _sure(group)
        needed = exposed & scope.locals
        seen = {
            name
            for name in stored
            if name in scope.results
            or scope.uses.is_read(name, scope.first, first)
            or scope.uses.is_read(name, after, scope.after)
        }
        results = sorted(name for name in stored if name in needed or (name in seen and name in sure | known))
        wanted = needed.union(r for r in results if r not in sure)
        parameters = sorted(wanted, key=lambda name: (name != "state", name))
        name = f"part_{self.number}"
        self.number += 1
        returns = {line.text for one in group for line in one.lines() if line.text.startswith("return ")}
        stop = next(wish for i in count() if (wish := f"stopped_{i}") not in scope.locals)
        stops = [stop] if returns else []
        given = ", ".join([*("0" for _ in stops), *results])
        moved = _with_stop_flag(group, results) if returns else group
        end = (_Line(f"return {given}"),) if given else ()
        head = f"def {name}({', '.join(parameters)}):"
        own = _Scope(scope.uses, wanted | stored, first, after, frozenset(results))
        whole = (*self.body(moved, wanted, own, 0, 1), *end)
        self.parts.append("\n".join(["@jit", head, *_printed(whole, 1)]) + "\n")
        call = f"{name}({', '.join(parameters)})"
        targets = ", ".join([*stops, *results])
        calling = _Line(f"{targets} = {call}" if targets else call)
        if not returns:
            return (calling,)
        (back,) = returns
        return calling, _Line(f"if {stop} != 0:", (_Line(back),))


def _with_stop_flag(body: _Body, results: list[str]) -> _Body:
    """The lines, with a ``return`` that also says that the function around ends."""
    return tuple(
        _Line(
            f"return {', '.join(['1', *results])}" if line.text.startswith("return ") else line.text,
            _with_stop_flag(line.inside, results),
            line.first,
            line.after,
        )
        for line in body
    )


def _leaves(group: _Body) -> bool:
    """True if a statement ends or continues a loop around it."""
    return any(
        line.text in ("break", "continue") or (not line.is_loop and _leaves(line.inside)) for line in group
    )


def _groups(body: _Body) -> Iterator[_Body]:
    """Statements, each ``if`` with its branches."""
    group: list[_Line] = []
    for line in body:
        if group and not line.is_branch:
            yield tuple(group)
            group = []
        group.append(line)
    if group:
        yield tuple(group)


def _exposed(body: _Body) -> frozenset[str]:
    """The names that statements read where they may not be assigned yet."""
    exposed: set[str] = set()
    _find_exposed(body, set(), exposed)
    return frozenset(exposed)


def _find_exposed(body: _Body, known: set[str], exposed: set[str]) -> None:
    """Add the exposed names to ``exposed``. ``known``: names that are assigned before, the same before and after the
    call."""
    sure: list[str] = []
    for group in _groups(body):
        for line in group:
            read, assigned = line.names
            exposed.update(name for name in read if name not in known)
            if line.inside:
                targets = assigned - known
                known |= targets
                _find_exposed(line.inside, known, exposed)
                known -= targets
        found = _sure(group) - known
        known |= found
        sure += found
    known.difference_update(sure)


def _sure(group: _Body) -> frozenset[str]:
    """The names that one statement surely assigns: those that all branches of an ``if`` assign that go on after it."""
    if not group[0].inside:
        return group[0].names[1]
    if group[-1].text != "else:":
        return frozenset()
    ends = [line.sure for line in group if not _ends(line.inside)]
    return frozenset.intersection(*ends) if ends else frozenset()


def _ends(body: _Body) -> bool:
    """True if nothing after the body runs."""
    return body[-1].text.startswith(("return", "break", "continue"))


def _parameters(head: str) -> frozenset[str]:
    inside = head[head.index("(") + 1 : head.rindex(")")]
    return frozenset(name.strip() for name in inside.split(",") if name.strip())


def _after_docstring(lines: list[str]) -> int:
    """The number of lines of the docstring at the beginning of a body."""
    if not lines or lines[0].strip() != '"""':
        return 0
    return next(i for i in range(1, len(lines)) if lines[i].strip() == '"""') + 1


def _parsed(lines: list[str]) -> _Body:
    """The lines of a body as a tree."""
    open_: list[tuple[int, str, int, list[_Line]]] = [(0, "", 0, [])]
    place = 0

    def close(level: int) -> None:
        while open_[-1][0] > level:
            _, text, first, inside = open_.pop()
            open_[-1][3].append(_Line(text, tuple(inside), first, place))

    for line in lines:
        text = line.strip()
        if text and not text.startswith("#"):
            close(_level(line))
            if text.endswith(":"):
                open_.append((_level(line) + 1, text, place, []))
            else:
                open_[-1][3].append(_Line(text, (), place, place + 1))
            place += 1
    close(0)
    return tuple(open_[0][3])


def _printed(body: _Body, level: int) -> list[str]:
    found: list[str] = []
    _print(body, "    " * level, found)
    return found


def _print(body: _Body, indent: str, found: list[str]) -> None:
    for line in body:
        found.append(indent + line.text)
        _print(line.inside, indent + "    ", found)
