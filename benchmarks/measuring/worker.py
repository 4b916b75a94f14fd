"""One measurement in a process of its own: ``python -m benchmarks.measuring.worker <workload> <case> <strategy>``."""

from __future__ import annotations

import json
import os
import sys

from benchmarks.measuring.catalogue import module_of
from benchmarks.measuring.strategies import run


def main() -> None:
    workload, case, strategy = sys.argv[1:]
    module = module_of(workload)
    # A workload either yields a stream, which the strategy goes through, or measures by itself.
    found = run(module.stream(case), strategy) if hasattr(module, "stream") else module.measure(case, strategy)
    print(json.dumps(found), flush=True)
    os._exit(0)  # libraries may print while the interpreter shuts down


if __name__ == "__main__":
    main()
