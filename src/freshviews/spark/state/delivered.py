"""Records which versions the sinks of a pipeline have, in the object ``delivered`` of its checkpoint.

If no sink lacks a version, the object is the number of the last version. Else the object is JSON.
``{"version": 57, "behind": {"by_part": 51}}`` says that the sink of the view ``by_part`` lacks the versions from 51 on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from freshviews.errors import StoreError
from freshviews.spark.crash_points import reach
from freshviews.spark.state.stores.store import Objects
from freshviews.store.files import json_of

_NAME = "delivered"


class NotNoted(StoreError):
    """Raised if a delivery cannot be recorded; the next start delivers the version again."""


class Delivered:
    """The recorded deliveries of a store. ``version``: the last version; 0 before the first. ``behind``: by view, the
    first version that its sink lacks. Raises StoreError if it cannot be read."""

    def __init__(self, store: Objects) -> None:
        self._store = store
        self.version, self.behind = 0, dict[str, int]()
        try:
            found = json_of(store.read(_NAME))
            held = found if isinstance(found, dict) else {"version": found}
            self.version = int(held["version"])
            self.behind = {str(view): int(version) for view, version in held.get("behind", {}).items()}
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(
                f"{store.address}/{_NAME}, which records the versions of sinks, cannot be read: {error}"
            ) from None

    def note(self, version: int, behind: Mapping[str, int]) -> None:
        """Record the deliveries to sinks. Raises NotNoted."""
        held = {"version": version, "behind": dict(behind)} if behind else version
        try:
            self._store.write(_NAME, json.dumps(held).encode())
        except OSError as error:
            raise NotNoted(
                f"version {version} is delivered, but {self._store.address}/{_NAME} cannot record it: {error}; free "
                "some space there, then start again to deliver the version once more"
            ) from error
        self.version, self.behind = version, dict(behind)
        reach("delivery noted")
