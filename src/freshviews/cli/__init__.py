"""The command line: ``freshviews check``, ``explain`` and ``version``."""
