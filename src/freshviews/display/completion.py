"""Completes the names of tables and views in IPython and notebooks, after ``%load_ext freshviews``."""

from __future__ import annotations

import re
from typing import Any

_CALL = re.compile(
    r"""(\w+)\.(view|replan|table|insert|delete|upsert|update|apply|apply_in_order|apply_net|bytes_of)\(\s*["']([^"']*)$"""
)
_OF_VIEWS = ("view", "replan")


def complete_names(shell: Any) -> None:
    """Add the names to the completion of an IPython shell."""
    from IPython.core.completer import SimpleCompletion, context_matcher

    def freshviews_names(context: Any) -> Any:
        line = context.line_with_cursor
        found = [SimpleCompletion(name, type="relation") for name in names_at(line, shell.user_ns)]
        fragment = re.split("[\"']", line)[-1]
        return {"completions": found, "matched_fragment": fragment, "suppress": bool(found)}

    shell.Completer.custom_matchers.append(context_matcher()(freshviews_names))


def names_at(line: str, variables: dict[str, Any]) -> list[str]:
    """The names that a line which ends within a text may go on with."""
    call = _CALL.search(line)
    if call is None:
        return []
    name, method, begun = call.groups()
    database = variables.get(name)
    if type(database).__module__.partition(".")[0] != "freshviews":
        return []
    known: tuple[str, ...] = getattr(database, "views" if method in _OF_VIEWS else "tables", ())
    return [one for one in known if one.lower().startswith(begun.lower())]
