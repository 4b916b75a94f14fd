"""``python -m freshviews`` is the ``freshviews`` command."""

from freshviews.cli.main import main

if __name__ == "__main__":
    main()
