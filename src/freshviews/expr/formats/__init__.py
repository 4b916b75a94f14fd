"""Reads and writes texts of a given form: numbers by a format, URLs, values of JSON."""

__all__ = ["json_texts", "number_formats", "urls"]
