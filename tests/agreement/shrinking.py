"""Reduces a failing scenario: fewer versions, updates and views."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.agreement.long_streams import Stored
from tests.agreement.scenario import Scenario

Fails = Callable[[Scenario], bool]


def shrunk(scenario: Scenario, fails: Fails) -> Scenario:
    """A scenario that still fails, and from which nothing can be left out."""
    smaller = True
    while smaller:
        smaller = False
        for less in _with_less(scenario):
            if fails(less):
                scenario, smaller = less, True
                break
    return scenario


def _with_less(scenario: Scenario) -> Iterator[Scenario]:
    if len(scenario.views) > 1:
        yield replace(scenario, views=scenario.views[:-1])
    versions = scenario.versions
    # Long streams lose half, a quarter, ... of their versions at once.
    size = len(versions) // 2
    while size > 1:
        for i in range(0, len(versions), size):
            yield replace(scenario, versions=(*versions[:i], *versions[i + size :]))
        size //= 2
    for i in range(len(versions)):
        yield replace(scenario, versions=(*versions[:i], *versions[i + 1 :]))
    for i, version in enumerate(versions):
        for j, (table, updates) in enumerate(version):
            for k in range(len(updates)):
                fewer = (table, (*updates[:k], *updates[k + 1 :]))
                changed = (*version[:j], *([fewer] if fewer[1] else []), *version[j + 1 :])
                yield replace(scenario, versions=(*versions[:i], changed, *versions[i + 1 :]))


def is_allowed(scenario: Scenario) -> bool:
    """True if after each version checked tables have no negative multiplicity, and no key twice."""
    stored = Stored(scenario.tables)
    for version in scenario.versions:
        stored.apply(version)
        for table in scenario.tables:
            if table.trusted:
                continue
            rows = stored.rows[table.name]
            here = [row for row, m in rows.items() for _ in range(m)]
            keys = [table.key_of(row) for row in here if table.key_of(row) is not None]
            if min(rows.values(), default=0) < 0 or len(keys) != len(set(keys)):
                return False
    return True
