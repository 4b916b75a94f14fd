"""What freshviews costs, beside what runs next to it.

``python -m benchmarks quick`` and ``full`` measure what ``schedule`` lists, each strategy in a process of its own and
in turn (A B A B), print the tables, and write every figure into benchmarks/results/ and, of a full run,
docs/benchmarks.md.

A workload is a module with ``stream(case)``: tables, a view, batches of changes, and points at which answers are
compared (``stream``). ``strategies`` lists who keeps a view fresh, our own strategies (``ours``) and the peers
(``peers``, one a file), and ``course`` times them. The workloads are ``graph``, ``star``, ``tpch``, ``triangle``,
``snb``, ``orderbook``, ``flights`` and ``oumv``. Those that are no stream measure themselves: ``single_rows``,
``memory``, ``first_use``, ``steps``, ``trie``, ``moves``, ``tree_load``, and on Spark ``pipeline_star``,
``pipeline_fixed``, ``pipeline_graph``, ``pipeline_restart``, ``pipeline_workers``, which share ``pipeline_run`` and
``pipeline_state``.

``run`` goes through the schedule, ``processes`` starts and ends a measurement (``worker`` is its other side),
``environments`` makes those of peers that clash, ``results`` keeps what is measured, ``report`` and ``plots`` make the
page of it, ``check`` is the guard.
"""
