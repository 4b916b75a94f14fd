"""Converts rows of Python values or of Arrow columns to codes and back, and checks each column."""

__all__ = [
    "code_batch",
    "decoding",
    "defaults",
    "dictionary_mark",
    "encoding",
    "frame_types",
    "inputs",
    "key_codes",
    "marks",
    "moments",
    "objects",
    "string_codes",
    "text_columns",
    "words",
]
