"""The command line: ``freshviews check``, ``explain``, ``advise``, ``run``, ``status``, ``query``, ``serve`` and ``version``."""

__all__ = []
