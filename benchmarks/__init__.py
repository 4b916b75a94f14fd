"""The cost of freshviews beside its peers.

``python -m benchmarks quick`` and ``full`` measure the entries of ``running.schedule``, each strategy in a process of
its own and in turns (A B A B), print tables, and write every figure into benchmarks/results. ``python -m benchmarks
page`` generates the pages of docs/ and the table of README.md from these results.

The packages, each of which may import those before it:

- ``measuring``: one measurement: streams, strategies, answers, processes;
- ``workloads``: streams of changes, a module each;
- ``timing``, ``counting``, ``pipeline``: workloads that measure themselves, by time, by steps, and on Spark;
- ``peers``: the systems beside freshviews, a module each;
- ``running``: runs of many measurements, their results, and the guard;
- ``reporting``: pages and charts.
"""

import os

# Speed is measured of compiled code, not of what stands in for it; ``timing.first_use`` says otherwise.
os.environ.setdefault("FRESHVIEWS_COMPILE", "ahead")
