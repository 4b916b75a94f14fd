"""The command line: ``freshviews check``, ``explain``, ``advise``, ``run``, ``status``, ``query`` and ``version``."""

__all__ = []
