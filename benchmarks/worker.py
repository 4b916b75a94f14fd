"""One measurement in a process of its own: ``python -m benchmarks.worker <workload> <case> <strategy>``."""

from __future__ import annotations

import json
import os
import sys
from importlib import import_module


def main() -> None:
    workload, case, strategy = sys.argv[1:]
    module = import_module(f"benchmarks.{workload}")
    print(json.dumps(module.measure(case, strategy)), flush=True)
    os._exit(0)  # what libraries do and print while the interpreter is taken down is nobody's


if __name__ == "__main__":
    main()
