"""Converts rows to codes and back: Python values and Arrow columns, checked by column."""

__all__ = [
    "code_batch",
    "decoding",
    "defaults",
    "dictionary_mark",
    "encoding",
    "inputs",
    "key_codes",
    "marks",
    "string_codes",
    "text_columns",
    "words",
]
