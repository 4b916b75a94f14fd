"""What the statements of the trigger language contain."""

from __future__ import annotations

from freshviews.program.statements import (
    Add,
    Changed,
    Enter,
    Exists,
    If,
    Leap,
    Leave,
    Lookup,
    Loop,
    Smaller,
    Statement,
    Sum,
    Tally,
    Top,
)


def bodies(statement: Statement) -> tuple[tuple[Statement, ...], ...]:
    """The nested bodies of a statement."""
    match statement:
        case If() | Loop() | Changed() | Exists() | Tally() | Leap() | Top():
            return (statement.body,)
        case Lookup(body=body, otherwise=otherwise):
            return (body, otherwise)
        case Enter(events=events) | Leave(events=events):
            return tuple(body for event in events for body in (event.alone, event.others))
        case Smaller(left=left, right=right):
            return (left.body, right.body)
        case Sum(body=body, then=then):
            return (body, then)
        case Add(appear=appear, vanish=vanish, stay=stay):
            return (appear, vanish, stay)
        case _:
            return ()
