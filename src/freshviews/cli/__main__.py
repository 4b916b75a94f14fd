"""Runs the ``freshviews`` command as ``python -m freshviews.cli``."""

from freshviews.cli.main import main

main()
