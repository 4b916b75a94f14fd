"""How much the agreement tests do, by environment variables.

``FRESHVIEWS_AGREEMENT`` is the number of random scenarios of a run, 200 by default; more are for a run by hand.
"""

from __future__ import annotations

import os

SCENARIOS = int(os.environ.get("FRESHVIEWS_AGREEMENT", "200"))
SHARES = 2
"""Processes that the plain-Python run is spread over."""

SHARE = int(os.environ.get("FRESHVIEWS_AGREEMENT_SHARE", "0"))
"""The share that this process runs."""
