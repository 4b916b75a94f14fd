"""The command line: ``freshviews check``, ``explain``, ``run``, ``status``, ``query``, ``serve`` and more."""

__all__ = ["main"]
