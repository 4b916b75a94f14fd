"""One measurement in a process of its own: ``python -m benchmarks.worker <workload> <case> <strategy>``."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module

from benchmarks.strategies import run


def main() -> None:
    workload, case, strategy = sys.argv[1:]
    module = import_module(f"benchmarks.{workload}")
    # A workload over a stream says which; the others measure by themselves.
    found = run(module.stream(case), strategy) if hasattr(module, "stream") else module.measure(case, strategy)
    print(json.dumps(found), flush=True)
    os._exit(0)  # what libraries do and print while the interpreter is taken down is nobody's


if __name__ == "__main__":
    main()
