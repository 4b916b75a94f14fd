"""The command line: ``freshviews check``, ``explain``, ``run``, ``status``, ``query`` and ``version``."""

__all__ = []
