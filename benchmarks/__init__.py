"""What freshviews costs, beside what runs next to it.

``python -m benchmarks`` measures every workload, each strategy in a process of its own and in turn (A B A B),
prints the table, and writes it into docs/benchmarks.md and, with every single figure, into benchmarks/results/.

One file per workload: ``star``, ``tpch``, ``triangle``, ``single_rows``, ``memory``, ``first_use``, ``steps``, and on
Spark ``pipeline_star``, ``pipeline_fixed``, ``pipeline_graph``, ``pipeline_restart``, ``pipeline_workers``, which share
``pipeline_run`` and ``pipeline_state``.
``stream`` says what a stream of batches is and runs it through freshviews; ``peers`` runs it through what is
measured beside; ``measuring`` has clocks, processes and statistics; ``report`` the table.
"""
