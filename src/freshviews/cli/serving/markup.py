"""Writes HTML elements, and escapes all text in them."""

from __future__ import annotations

from html import escape

_WITHOUT_END = frozenset({"input", "link", "meta"})


class Markup(str):
    """HTML; any other text is escaped when it becomes a part of it."""

    __slots__ = ()


def tag(name: str, /, *parts: str, **attributes: str | int) -> Markup:
    """An element. Its parts are elements or texts; ``class_`` is the attribute class, ``aria_label`` aria-label."""
    shown = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"' for key, value in attributes.items())
    inner = joined(*parts)
    return Markup(f"<{name}{shown}>" if name in _WITHOUT_END else f"<{name}{shown}>{inner}</{name}>")


def joined(*parts: str) -> Markup:
    """Elements and texts one after the other."""
    return Markup("".join(part if isinstance(part, Markup) else escape(part) for part in parts))
