"""Converts day numbers to years, months and days, and back, for all years of the proleptic Gregorian calendar."""

from __future__ import annotations

MICROS_PER_SECOND = 1_000_000
MICROS_PER_DAY = 86_400 * MICROS_PER_SECOND

LEAST_DAY = -(2**31)
"""Least code of a DATE: the range of Arrow's date32 and of Spark."""

GREATEST_DAY = 2**31 - 1
"""Greatest code of a DATE."""


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 of a date; ``month`` is 1..12 and ``day`` counts from the 1st, unchecked."""
    shifted = year - 1 if month <= 2 else year
    era = shifted // 400
    year_of_era = shifted - era * 400
    month_from_march = (month + 9) % 12
    day_of_year = (153 * month_from_march + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Year, month and day of a count of days since 1970-01-01."""
    shifted = days + 719_468
    era = shifted // 146_097
    day_of_era = shifted - era * 146_097
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
    year = year_of_era + era * 400
    return (year + 1 if month <= 2 else year), month, day


def days_in_month(year: int, month: int) -> int:
    """Number of days of a month: 28 to 31."""
    if month == 2:
        return 29 if (year % 4 == 0 and year % 100 != 0) or year % 400 == 0 else 28
    return 30 if month in (4, 6, 9, 11) else 31
