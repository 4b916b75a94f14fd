"""The cost of freshviews compared with its peers.

``python -m benchmarks quick`` and ``full`` measure the entries of ``running.schedule``, each strategy in a process of
its own and in turns (A B A B), print tables, and write every figure into benchmarks/results. ``python -m benchmarks
page`` generates the pages of docs/ and the table of README.md from these results.

The packages, each of which may import the earlier ones:

- ``measuring``: one measurement: streams, strategies, answers, processes;
- ``workloads``: streams of changes, a module each;
- ``timing``, ``counting``, ``pipeline``: workloads that measure themselves, by time, by steps, and on Spark;
- ``peers``: the systems that freshviews is compared with, a module each;
- ``running``: runs of many measurements, their results, and the guard;
- ``reporting``: pages and charts.
"""

import os

# The speed of compiled code is measured, from the start; ``timing.first_use`` sets this otherwise.
os.environ.setdefault("FRESHVIEWS_COMPILE", "ahead")
