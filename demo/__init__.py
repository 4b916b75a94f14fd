"""Views over a year of flights out of New York, kept fresh while the year is replayed day by day."""
