"""Reads the options of a polled database table, which Spark reads again and again for new rows.

New rows are found by a column whose values grow.

::

    poll 'updated_at'           each poll reads the rows whose updated_at is new since the last version
    poll_lag '5 minutes'        a row that is committed late may have an updated_at 5 minutes below the greatest one
    poll_every '2 seconds'      time between two reads
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from freshviews.errors import FreshviewsError
from freshviews.records import dataclass

OPTIONS = ("poll", "poll_lag", "poll_every")
LOGIN = 60
"""Seconds in which a polled database must accept a connection."""
AWAY = 600
"""Seconds for which a polled database may be silent, and may be away while a run continues."""
_TIME = re.compile(r"\s*(\d+)\s+(day|hour|minute|second)s?\s*", re.IGNORECASE)
_UNITS = {"day": 86400, "hour": 3600, "minute": 60, "second": 1}


class PollError(FreshviewsError):
    """An option of a table that is polled is wrong; ``option`` names it."""

    def __init__(self, option: str, text: str) -> None:
        super().__init__(text)
        self.option = option


@dataclass(frozen=True)
class Poll:
    """How a table is polled. ``column``: its values grow. ``seconds``: the lag by a column of times, ``numbers``: by
    one of numbers; the other is None. ``every``: seconds between two reads."""

    column: str
    seconds: int | None = 60
    numbers: int | None = 1000
    every: int = 10


def poll_of(options: Mapping[str, str]) -> Poll | None:
    """The poll that options declare, by their lower-case names; None if a table is not polled. Raises PollError."""
    found = {name: options[name].strip() for name in OPTIONS if name in options}
    if not found:
        return None
    if not found.get("poll"):
        option = next(iter(found))
        raise PollError(option, "poll must name the column whose values grow, as in poll 'updated_at'")
    poll = Poll(found["poll"])
    if "poll_lag" in found:
        lag = found["poll_lag"]
        time = _TIME.fullmatch(lag)
        if time is None and not lag.isdigit():
            raise PollError("poll_lag", f"poll_lag must be like '5 minutes' for times, '1000' for numbers, not {lag!r}")
        poll = Poll(poll.column, _seconds(time), int(lag) if time is None else None)
    if "poll_every" in found:
        every = _seconds(_TIME.fullmatch(found["poll_every"]))
        if not every:
            raise PollError("poll_every", f"poll_every must be like '10 seconds', not {found['poll_every']!r}")
        poll = Poll(poll.column, poll.seconds, poll.numbers, every)
    return poll


def _seconds(time: re.Match[str] | None) -> int | None:
    return None if time is None else int(time[1]) * _UNITS[time[2].lower()]
