"""Defines ``Explanation``, the text that ``View.explain`` returns.

Its methods return the parts of the text as a dict, and draw a graph of the tables and views that the view reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from html import escape
from typing import Any

from freshviews.display.graph import Node, mermaid, svg
from freshviews.printable import printable


class Explanation(str):
    """How a view is maintained: the text of ``View.explain``, with its parts.

    Examples
    --------
    >>> explanation = db.view("by_part").explain()
    >>> explanation.splitlines()[:2]
    ['view by_part(part STRING, qty BIGINT)', 'reads items']
    """

    _parts: dict[str, Any]
    _nodes: tuple[Node, ...]

    def __new__(cls, text: str, parts: dict[str, Any], nodes: Sequence[Node]) -> Explanation:
        made = super().__new__(cls, text)
        made._parts, made._nodes = parts, tuple(nodes)
        return made

    def __getnewargs__(self) -> tuple[str, dict[str, Any], tuple[Node, ...]]:  # type: ignore[override]
        return str(self), self._parts, self._nodes

    def to_dict(self) -> dict[str, Any]:
        """Return the parts: what JSON can write.

        Returns
        -------
        dict[str, Any]
            ``view``, ``columns``, ``reads``; ``blocks``, each with ``query``, ``class``, ``strategy``, ``reason``,
            ``bounds`` by name and ``costs`` by relation (``lookups``, ``rows_walked`` and ``writes`` per row, and
            whether they are ``measured``); ``stored``, with rows and bytes by name; and ``inner``, the same of each
            internal view.

        Examples
        --------
        >>> db.view("by_part").explain().to_dict()["blocks"][0]["bounds"]["update"]
        'O(1)'
        """
        return deepcopy(self._parts)

    def mermaid(self) -> str:
        """Draw the relations below the view as a flowchart of Mermaid.

        Returns
        -------
        str
            Text for a page or a notebook that draws Mermaid.

        Examples
        --------
        >>> print(db.view("by_part").explain().mermaid().splitlines()[0])
        flowchart LR
        """
        return mermaid(self._nodes)

    def svg(self) -> str:
        """Draw the relations below the view.

        Returns
        -------
        str
            An SVG image.

        Examples
        --------
        >>> db.view("by_part").explain().svg()[:4]
        '<svg'
        """
        return svg(self._nodes)

    def __repr__(self) -> str:
        return printable(str(self))

    def _repr_html_(self) -> str:
        return f"<div>{svg(self._nodes)}<pre>{escape(printable(str(self)))}</pre></div>"
