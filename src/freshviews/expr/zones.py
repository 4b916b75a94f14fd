"""Moves timestamps between time zones, by the time zone database of the machine."""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from freshviews.expr.casts import has_offset, string_to_timestamp

_EPOCH = dt.datetime(1970, 1, 1)
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])([0-9]{1,2})(?::?([0-9]{2})(?::?([0-9]{2}))?)?")
_NAME = re.compile(r"[A-Z][A-Za-z0-9_+\-]*(?:/[A-Za-z0-9_+\-]+)*")
_SHORT = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh", "EST": "-05:00", "MST": "-07:00", "HST": "-10:00",
}  # fmt: skip


@lru_cache(maxsize=256)
def _zone(name: str) -> dt.tzinfo:
    zone = _SHORT.get(name, name)
    if zone in ("Z", "UTC", "GMT", "UT"):
        return dt.UTC
    if found := _OFFSET.fullmatch(zone):
        hours, minutes, seconds = (int(found[i] or 0) for i in (2, 3, 4))
        if minutes < 60 and seconds < 60 and hours * 3600 + minutes * 60 + seconds <= 18 * 3600:
            offset = dt.timedelta(hours=hours, minutes=minutes, seconds=seconds)
            return dt.timezone(-offset if found[1] == "-" else offset)
    try:
        if _NAME.fullmatch(zone):
            return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        pass
    raise ValueError(f"{name!r} is not a time zone; write a name such as 'Europe/Paris', or an offset such as '+02:00'")


def is_time_zone(name: str) -> bool:
    """True for a name or an offset that the functions of this module take."""
    try:
        _zone(name)
    except ValueError:
        return False
    return True


_OUTSIDE = "the timestamp is outside the years 1 to 9999, so no time zone applies"


def _moment(micros: int) -> dt.datetime:
    try:
        return _EPOCH + dt.timedelta(microseconds=micros)
    except OverflowError:
        raise ValueError(_OUTSIDE) from None


def from_utc_timestamp(micros: int, zone: str) -> int:
    """The local time in a zone of a moment in UTC."""
    moment = _moment(micros).replace(tzinfo=dt.UTC)
    try:
        offset = moment.astimezone(_zone(zone)).utcoffset()
    except OverflowError:  # The local time is outside.
        raise ValueError(_OUTSIDE) from None
    assert offset is not None
    return micros + offset // dt.timedelta(microseconds=1)


def to_utc_timestamp(micros: int, zone: str) -> int:
    """The moment in UTC of a local time in a zone: the earlier one of two, and after a gap as long as it is."""
    offset = _moment(micros).replace(tzinfo=_zone(zone)).utcoffset()
    assert offset is not None
    return micros - offset // dt.timedelta(microseconds=1)


def moment_beside(micros: int, other: int, zone: str) -> int:
    """As ``to_utc_timestamp``, but of two moments the one with the offset from UTC of another moment."""
    later = micros - (from_utc_timestamp(other, zone) - other)
    try:
        if from_utc_timestamp(later, zone) == micros:
            return later
    except ValueError:
        pass
    return to_utc_timestamp(micros, zone)


def string_to_moment(text: str, zone: str) -> int:
    """As ``string_to_timestamp``, of a local time in a zone, unless the text has an offset."""
    micros = string_to_timestamp(text)
    return micros if has_offset(text) else to_utc_timestamp(micros, zone)


def convert_timezone(source: str, target: str, micros: int) -> int:
    """The local time in a zone of a local time in another one."""
    return from_utc_timestamp(to_utc_timestamp(micros, source), target)
