"""What all tests share: golden files, and small cells."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

# Many images, as cells of tests are small. Set before anything reads it; workers of Spark have it from its Java.
os.environ.setdefault("FRESHVIEWS_SMALLEST_IMAGE", "20000")

# Whoever runs tests in the background may have had Ctrl-C ignored, and then all they start ignores it, too.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--regenerate", action="store_true", help="write golden files instead of comparing")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden(name, text)``: the text must be that of the golden file with this name."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--regenerate"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path} is missing; make it with pytest --regenerate"
        assert text == path.read_text(), f"{path} differs; if that is meant, pytest --regenerate"

    return check
