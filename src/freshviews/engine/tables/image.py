"""Images of stored tables: the rows of a table and the counts by its keys in one file, and back.

An image holds codes alone, so the dictionary must have the same strings under the same codes.
"""

from __future__ import annotations

from pathlib import Path

from freshviews.engine.codes.dictionary_mark import check_mark, mark_of
from freshviews.engine.tables.base_table import BaseTable
from freshviews.errors import OtherProgram, StoreError
from freshviews.kernel.image import image_of, shape_of
from freshviews.store.array_file import ArrayFile, write_arrays
from freshviews.types.dictionary import Dictionary

KIND = "table"


def write_table_image(path: Path, name: str, table: BaseTable, dictionary: Dictionary, sync: bool) -> None:
    """Write the image of a settled base table, whole or not at all. Raises StoreError."""
    images = [image_of(handle) for handle in table.handles]
    about = {
        "kind": KIND,
        "table": name,
        "strings": mark_of(dictionary),
        "tables": [{"shape": image.shape, "kept": image.kept} for image in images],
    }
    write_arrays(path, about, [array for image in images for array in image.arrays], sync)


def read_table_image(path: Path, name: str, table: BaseTable, dictionary: Dictionary, verify: bool) -> None:
    """Have a base table, empty so far, go on where the writer of an image was.

    ``verify``: see ``ArrayFile.map``. Raises StoreError, OtherProgram where the table has another layout; it is as
    before then.
    """
    with ArrayFile(path) as file:
        about = file.about
        if about.get("kind") != KIND:
            raise StoreError(f"{path} is no image of a table")
        if about["table"] != name:
            raise StoreError(f"{path} is an image of table {about['table']}, not of {name}")
        if [part["shape"] for part in about["tables"]] != [list(shape_of(handle)) for handle in table.handles]:
            raise OtherProgram(
                f"{path}: the image of table {name} was written by a table of other columns or keys, or by another "
                "freshviews that keeps them in another way; open it with what wrote it"
            )
        check_mark(path, f"table {name}", about, dictionary)
        table.take_image([part["kept"] for part in about["tables"]], file.map(0, len(file), verify))
