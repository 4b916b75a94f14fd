"""Draws a graph of tables and views, as Mermaid text or SVG. An edge leads from a relation to a view that reads it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from freshviews.printable import cell
from freshviews.records import dataclass

_HIGH, _GAP, _WIDE, _ACROSS, _LETTER = 18, 16, 60, 12, 7.2
_LONGEST = 40


@dataclass(frozen=True)
class Node:
    """A relation: its name, further lines, and the names of the relations that it reads."""

    name: str
    lines: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()

    @property
    def texts(self) -> list[str]:
        """The lines of the node, as they are shown."""
        texts = map(cell, (self.name, *self.lines))
        return [text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..." for text in texts]


def mermaid(nodes: Sequence[Node]) -> str:
    """The nodes as a flowchart in Mermaid's text."""
    numbers = {node.name.lower(): number for number, node in enumerate(nodes)}
    lines = ["flowchart LR"]
    for node in nodes:
        shown = "<br/>".join(map(_entities, node.texts))
        lines.append(f'    n{numbers[node.name.lower()]}["{shown}"]')
    for node in nodes:
        for name in node.reads:
            if name.lower() in numbers:
                lines.append(f"    n{numbers[name.lower()]} --> n{numbers[node.name.lower()]}")
    return "\n".join(lines) + "\n"


def _entities(text: str) -> str:
    """Text with Mermaid's entities in the place of all that has a meaning in a label."""
    return "".join(one if one.isalnum() or one in " _.,()|^+-" else f"#{ord(one)};" for one in text)


def svg(nodes: Sequence[Node]) -> str:
    """The nodes as a drawing: each to the right of those that it reads."""
    by_name = {node.name.lower(): node for node in nodes}
    layer: dict[str, int] = {}
    for node in nodes:  # Each after its inputs.
        layer[node.name.lower()] = 1 + max((layer.get(name.lower(), -1) for name in node.reads), default=-1)
    columns = [[name for name in layer if layer[name] == depth] for depth in range(max(layer.values(), default=-1) + 1)]
    boxes: dict[str, tuple[float, float, float, float]] = {}
    left = 1.0
    for names in columns:
        wide = max(len(text) for name in names for text in by_name[name].texts) * _LETTER + 2 * _ACROSS
        top = 1.0
        for name in names:
            high = _HIGH * len(by_name[name].texts) + 10
            boxes[name] = (left, top, wide, high)
            top += high + _GAP
        left += wide + _WIDE
    width = max((x + w for x, _, w, _ in boxes.values()), default=0) + 1
    height = max((y + h for _, y, _, h in boxes.values()), default=0) + 1
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="12">'
    ]
    for name, node in by_name.items():
        x, y, w, h = boxes[name]
        for read in node.reads:
            if read.lower() in boxes:
                a, b, c, d = boxes[read.lower()]
                parts.append(
                    f'<path d="M {a + c:.0f} {b + d / 2:.0f} C {a + c + 30:.0f} {b + d / 2:.0f}, {x - 30:.0f} '
                    f'{y + h / 2:.0f}, {x:.0f} {y + h / 2:.0f}" fill="none" stroke="#888"/>'
                )
    for name, node in by_name.items():
        x, y, w, h = boxes[name]
        fill = "#eef3fb" if node.reads else "#f4f4f4"
        parts.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{w:.0f}" height="{h:.0f}" rx="4" fill="{fill}" stroke="#888"/>'
        )
        for line, text in enumerate(node.texts):
            weight = ' font-weight="bold"' if line == 0 else ""
            place = f'x="{x + _ACROSS:.0f}" y="{y + _HIGH * (line + 1):.0f}"'
            parts.append(f'<text {place} fill="#000"{weight}>{escape(text)}</text>')
    return "".join(parts) + "</svg>"
