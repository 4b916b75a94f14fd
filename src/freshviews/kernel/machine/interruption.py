"""Lets Ctrl-C end a step of a commit early.

Signal handlers are deferred during a commit. So long steps themselves check whether Ctrl-C was pressed.
"""

from __future__ import annotations

from threading import get_ident

PIECE = 1 << 17
"""Most rows that machine code takes between two checks for a request; plain Python takes ``FEW``."""
FEW = 1 << 14


class Interruption:
    """The state of a request to end a step by KeyboardInterrupt. Each word is the number of a thread, 0 for none.

    ``asked``: it received SIGINT. ``allowed``: its evaluation of strings, or its wait for a function, may end.
    ``unchanged``: its step has changed nothing so far, so it may end wherever it looks.
    """

    __slots__ = ("allowed", "asked", "unchanged")

    def __init__(self) -> None:
        self.asked = self.allowed = self.unchanged = 0

    def raise_if_allowed(self) -> None:
        """Raise KeyboardInterrupt, once, if this thread received SIGINT and its evaluation may end."""
        if self.asked and self.asked in (self.allowed, self.unchanged) and self.asked == get_ident():
            self.asked = self.allowed = self.unchanged = 0
            raise KeyboardInterrupt

    def raise_if_unchanged(self) -> None:
        """Raise KeyboardInterrupt, once, if this thread received SIGINT and its step has changed nothing."""
        if self.asked and self.asked == self.unchanged == get_ident():
            self.asked = self.unchanged = 0
            raise KeyboardInterrupt

    def raise_if_asked(self) -> None:
        """Raise KeyboardInterrupt, once, if this thread received SIGINT: the caller takes its changes back."""
        if self.asked and self.asked == get_ident():
            self.asked = 0
            raise KeyboardInterrupt


INTERRUPTION = Interruption()
