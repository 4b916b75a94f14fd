"""``python -m freshviews.cli`` is the ``freshviews`` command."""

from freshviews.cli.main import main

main()
