"""Converts rows and Arrow columns to codes, which are 64-bit integers, and back. Checks each column."""

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
