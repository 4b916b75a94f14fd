"""Keeps in a checkpoint the files that Spark itself writes for a streaming query.

Spark writes offsets of its sources, numbers of finished micro-batches, and names of files that it has read.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from freshviews.errors import StoreError
from freshviews.spark.state.stores.store import Store
from freshviews.store.files import json_of

NAME = "spark"
MOST = 16
"""Number of objects that a manifest names, after which all files are written to one again."""


class SparkFiles:
    """Spark's files while a pipeline runs; ``folder`` is where Spark has them.

    If the checkpoint is in a folder, Spark writes these files there. Spark needs renames, which an object store lacks.
    So for an object store, Spark writes to the driver's disk. Before a version is committed, the new files are copied
    to one object, which the manifest names. A run begins with the files that the last manifest names. So Spark plans an
    uncommitted micro-batch again.
    """

    def __init__(self, store: Store) -> None:
        self.folder = store.local / NAME
        self._store = store
        self._saved: set[str] = set()

    def restore(self, names: Sequence[str]) -> None:
        """Begin with the files in objects that a manifest names. Raises StoreError."""
        if not self._store.is_local:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(parents=True)
            self._saved = _restored(self._store, names, self.folder)

    def save(self, names: Sequence[str]) -> list[str]:
        """Write the files that are new since ``names`` were written; return the names to put into the next manifest.

        Raises OSError, and StoreError if Spark keeps more than such files.
        """
        if self._store.is_local:
            return []
        if (self.folder / "state").exists():
            raise StoreError(
                f"{self._store.address} cannot store the state of a stateful operator of Spark, such as "
                "dropDuplicates; remove the operator, or use a checkpoint in a folder"
            )
        there = set(_files(self.folder))
        whole = len(names) >= MOST
        new = there if whole else there - self._saved
        if not new:
            return list(names)
        name = f"{NAME}/{uuid.uuid4().hex}.json"
        text = json.dumps({file: (self.folder / file).read_text() for file in sorted(new)})
        self._store.write(name, text.encode())
        self._saved = there
        return [name] if whole else [*names, name]


@contextmanager
def files_at(store: Store, names: Sequence[str]) -> Iterator[Path]:
    """A folder with Spark's files as of a manifest that names ``names``, for a reader. Raises StoreError."""
    if store.is_local:
        yield store.local / NAME
        return
    with TemporaryDirectory() as folder:
        _restored(store, names, Path(folder))
        yield Path(folder)


def _restored(store: Store, names: Sequence[str], folder: Path) -> set[str]:
    found: set[str] = set()
    name = ""
    try:
        for name in names:
            for file, text in json_of(store.read(name)).items():
                path = folder / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
                found.add(file)
    except (OSError, ValueError) as error:
        raise StoreError(
            f"Spark's offsets cannot be read from {store.address}/{name}: {error}; put the object back, or begin with "
            "a new checkpoint, which reads all input again"
        ) from error
    return found


def _files(folder: Path) -> Iterator[str]:
    """Files that Spark has finished; those whose names begin with a dot are checksums and unfinished ones."""
    for path in folder.rglob("[!.]*"):
        if path.is_file():
            yield str(path.relative_to(folder))
