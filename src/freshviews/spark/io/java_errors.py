"""Shortens errors of Spark and Java to their messages, without stack traces."""

from __future__ import annotations

_OF_STACK = ("at ", "Caused by: ", "... ", "Driver stacktrace")
"""What the lines of a stack begin with, which Spark puts into messages of tasks."""


def _without_stack(text: str) -> str:
    lines = (line.strip() for line in text.splitlines())
    return " ".join(" ".join(line for line in lines if not line.startswith(_OF_STACK)).split())


def cause(error: BaseException) -> str:
    """Spark's message without its stack traces."""
    java = getattr(error, "java_exception", None)
    if java is not None:
        messages = []
        while java is not None:
            messages.append(_without_stack(str(java.getMessage())))
            java = java.getCause()
        return ": ".join(dict.fromkeys([messages[0], messages[-1]]))
    text = str(error).partition("=== Streaming Query ===")[0]
    if "Traceback (most recent call last)" in text:
        # Of a Python worker: the error is the last line.
        return next(line.strip() for line in reversed(text.splitlines()) if line.strip())
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith(("at ", "File ", "Driver stacktrace", "Traceback"))]
    return (kept or [type(error).__name__])[0]
