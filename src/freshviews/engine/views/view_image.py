"""Writes the native state of a view to a file, and restores the state from it. The file is called the view's image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from freshviews.catalog.nesting import room
from freshviews.codegen.module import hash_of
from freshviews.engine.blocks.runtime import BlockState
from freshviews.engine.codes.code_batch import Codes
from freshviews.engine.codes.dictionary_mark import check_mark, mark_of
from freshviews.engine.codes.words import address, words_at
from freshviews.errors import OtherProgram, StoreError
from freshviews.kernel.image import Array, array_count, image_of, plain_array, shape_of
from freshviews.kernel.memory.mapping import unmap
from freshviews.program.printer import print_program
from freshviews.program.program import Program
from freshviews.store.array_file import ArrayFile, write_arrays
from freshviews.types.dictionary import Dictionary

KIND = "view"


def write_image(
    path: Path, view: str, states: Sequence[BlockState], stored: dict[str, Codes], dictionary: Dictionary, sync: bool
) -> None:
    """Write the image of a view, whole or not at all. ``stored``: rows of words by name.

    Raises StoreError; ValueError if a change was not taken, because an image would lose it.
    """
    for state in states:
        if state.failed():
            raise StoreError(
                f"{path} was not written: memory ran out in view {view}; clear and backfill the view first"
            )
        if state.has_changes():
            raise ValueError(
                f"view {view} has an unread change, which an image cannot store; read or discard the change first"
            )
    arrays: list[Array] = []
    parts = []
    for state in states:
        images = [image_of(handle) for handle in state.tables]
        tables = [
            {"name": name.name, "shape": image.shape, "kept": image.kept}
            for name, image in zip(state.program.views, images, strict=True)
        ]
        found: dict[str, Any] = {"program": hash_of(identity_of(state.program)), "tables": tables}
        for part in state.parts:
            found |= part.image()
        parts.append(found)
        arrays += [array for image in images for array in image.arrays]
    rows = {name: np.ascontiguousarray(found) for name, found in stored.items()}
    arrays += [plain_array(address(found), found.size, found.size) for found in rows.values()]
    about = {
        "kind": KIND,
        "view": view,
        "strings": mark_of(dictionary),
        "parts": parts,
        "stored": [[name, *found.shape] for name, found in rows.items()],
    }
    write_arrays(path, about, arrays, sync)


def read_image(
    path: Path, view: str, states: Sequence[BlockState], dictionary: Dictionary, verify: bool
) -> dict[str, Codes]:
    """Restore the blocks of a view from an image; returns the stored rows.

    ``verify``: see ``ArrayFile.map``. Raises StoreError, or OtherProgram if the view's programs differ, and then
    changes nothing.

    An image has the arrays of every table of every block in their memory layout (``kernel.image``), and the stored rows
    of a recomputed view. Only a view with the same programs can read it (``identity_of``). The dictionary must give
    each code the string it had when the image was written.
    """
    with ArrayFile(path) as file:
        about = file.about
        _check(path, about, view, states, dictionary)
        mappings = []
        first = 0
        try:
            for state in states:
                count = sum(map(array_count, state.tables))
                mappings.append(file.map(first, count, verify))
                first += count
            stored = dict(_stored_rows(file, about, first, verify))
        except BaseException:
            for mapping in mappings:
                unmap(mapping.low, mapping.high - mapping.low)
            raise
    for state, part, mapping in zip(states, about["parts"], mappings, strict=True):
        state.take_image([table["kept"] for table in part["tables"]], mapping, part)
    return stored


def written_by(path: Path, programs: Sequence[Program]) -> bool:
    """Whether a file is the image of a view with these programs. Raises StoreError."""
    with ArrayFile(path) as file:
        parts = file.about.get("parts", ())
    return [part.get("program") for part in parts] == [hash_of(identity_of(program)) for program in programs]


@room()
def identity_of(program: Program) -> str:
    """The text that must be equal for an image to fit a state: the printed program, and its views in full.

    It excludes generated source, because names of kernel modules and of local variables may change between releases.
    """
    return f"{print_program(program)}\n{program.views!r}"


def _check(
    path: Path, about: dict[str, Any], view: str, states: Sequence[BlockState], dictionary: Dictionary
) -> None:
    if about.get("kind") != KIND:
        raise StoreError(f"{path} is not an image of a view")
    if about["view"] != view:
        raise StoreError(f"{path} is an image of view {about['view']}, not of {view}")
    programs = [hash_of(identity_of(state.program)) for state in states]
    shapes = [[list(shape_of(handle)) for handle in state.tables] for state in states]
    if [part.get("program") for part in about["parts"]] != programs or shapes != [
        [table["shape"] for table in part["tables"]] for part in about["parts"]
    ]:
        raise OtherProgram(
            f"{path}: the image of view {view} is out of date, because the view, its inputs or the release of "
            "freshviews changed; if only the release changed, open the database with the old release"
        )
    check_mark(path, f"view {view}", about, dictionary)


def _stored_rows(
    file: ArrayFile, about: dict[str, Any], first: int, verify: bool
) -> Iterator[tuple[str, Codes]]:
    for i, (name, rows, width) in enumerate(about["stored"]):
        mapping = file.map(first + i, 1, verify)
        try:
            yield name, words_at(mapping.places[0], rows, width)
        finally:
            unmap(mapping.low, mapping.high - mapping.low)
