"""Converts rows of Python values or of Arrow columns to codes and back, and checks each column."""

__all__ = [
    "code_batch",
    "decoding",
    "defaults",
    "dictionary_mark",
    "encoding",
    "inputs",
    "key_codes",
    "marks",
    "objects",
    "string_codes",
    "text_columns",
    "words",
]
