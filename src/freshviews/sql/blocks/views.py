"""Declares the interface by which modules of ``blocks`` make internal views and read them in joins.

An internal view holds the rows of a part of a query, such as a nested SELECT.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from freshviews.catalog.definitions import ColumnDef, ViewDef
from freshviews.query.block import Block
from freshviews.sql.blocks.bound import Bound, Select
from freshviews.sql.names.scope import Source


class Views(Protocol):
    """Makes internal views; implemented by ``ViewBinder``."""

    def internal_view(self, bound: Bound) -> ViewDef: ...

    def view_of(self, columns: tuple[ColumnDef, ...], blocks: Sequence[Block]) -> ViewDef: ...

    def source_of(self, view: ViewDef) -> Source: ...

    def one_row(self) -> Source: ...

    def shared_source(self, values: Select) -> Source: ...

    def is_positive(self, source: Source) -> bool: ...

    def reads_trusted(self, source: Source) -> bool: ...

    def keys_of(self, source: Source) -> tuple[tuple[str, ...], ...]: ...

    def identity_of(self, source: Source) -> tuple[str, ...]: ...
