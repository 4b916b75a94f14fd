"""One measurement in a process of its own: ``python -m benchmarks.measuring.worker <workload> <case> <strategy>``."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from benchmarks.measuring.catalogue import module_of
from benchmarks.measuring.strategies import run
from benchmarks.measuring.stream import NoData


def main() -> None:
    workload, case, strategy = sys.argv[1:]
    module = module_of(workload)
    found: Any
    # A workload either yields a stream, which the strategy processes, or measures by itself.
    try:
        found = run(module.stream(case), strategy) if hasattr(module, "stream") else module.measure(case, strategy)
    except NoData as error:
        found = {"missing": str(error)}
    print(json.dumps(found), flush=True)
    os._exit(0)  # libraries may print while the interpreter shuts down


if __name__ == "__main__":
    main()
