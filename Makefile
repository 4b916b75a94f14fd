# make demo, make test, make lint: each sets .venv up by itself. Python 3.11 to 3.13 is needed, nothing else; a Java
# for Spark is taken from the package index where the machine has none.
# PYTHON=... names the interpreter; JOBS=... the processes that run tests; KILLS=... how many kills are at random;
# SEED=... repeats a run of make fuzz, make states or make spark-agreement, SHARE=10 makes make fuzz a tenth as large;
# STATES=... is how many make states compares, QUERIES=... make spark-agreement; MINUTES=... is how long make flips takes, twice; BENCH=... options of the benchmarks, as
# BENCH='--only tpch --limit 5'.

JOBS ?= 2
KILLS ?= 100
SEED ?=
SHARE ?= 1
STATES ?= 100000
MINUTES ?= 20
SECONDS ?= 900
QUERIES ?= 3000
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/ready

.PHONY: help setup demo demo-kafka test test-change test-all warm fuzz states spark-agreement mutants flips soak soak-spark without-spark oldest newest-spark kills lint dist clean bench bench-full bench-check bench-ready

help:
	@echo "make demo    views over a year of flights stay fresh on Spark; ends with a check against DuckDB"
	@echo "make demo-kafka    a shop from Kafka to Delta Lake and PostgreSQL, with servers of its own and the same check"
	@echo "make test    the tests to run after each change: every package, every strategy, fixed seeds; 8 minutes on two cores"
	@echo "make test-change   every test function, a tenth of the random examples, a part of the cases; half an hour"
	@echo "make test-all   every test at full size, and the 20 slowest by name; an hour, less where code is compiled already"
	@echo "make warm    compiled code and an archive of Spark's classes, by which tests with Spark start in half of the time"
	@echo "make fuzz    random tests from a new seed; failures become files in tests/cases, which make test replays"
	@echo "make states  100,000 states of random views beside DuckDB, counted by construct; half an hour on one core"
	@echo "make spark-agreement  3,000 random queries beside live Spark, counted by construct: equal, refused, different; 15 minutes"
	@echo "make mutants  random SQL, valid or not, raises nothing but errors of freshviews; SECONDS=900"
	@echo "make flips   Arrow data with flipped bytes: refused or taken, compiled and as plain Python; MINUTES=20 of each"
	@echo "make soak    30 million rows with unique ids through a window of 100,000: memory stays flat; half an hour"
	@echo "make soak-spark  the same on Spark, with what its workers and its checkpoint hold"
	@echo "make without-spark   the package in an environment that has no pyspark"
	@echo "make oldest  SQL, formats and types with the oldest versions of dependencies that pyproject.toml admits"
	@echo "make newest-spark   the tests of pipelines with the newest Spark, which is not the default"
	@echo "make kills   a pipeline killed at every step, and at random moments"
	@echo "make lint    ruff and mypy"
	@echo "make dist    builds and checks wheel and source distribution, and installs both in the Pythons that are here"
	@echo "make bench   benchmarks of small sizes, beside all peers; a few minutes"
	@echo "make bench-full    all benchmarks; writes docs/benchmarks.md; an hour"
	@echo "make bench-check   fails where we fell behind plain Python and DuckDB"
	@echo "make setup   .venv alone"
	@echo "make clean   delete .venv and caches"

setup: $(READY)

# Nothing is done while the mark is newer than pyproject.toml. Python compiles a module when it is first imported: pip would
# compile all of them, which takes longer than the rest.
$(READY): pyproject.toml
	@set -e; \
	if ! $(RUN) -c 'import pip' 2>/dev/null; then \
	  found=; \
	  for each in $(PYTHON) python3 python3.13 python3.12 python3.11 python; do \
	    if $$each -c 'import sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then \
	      found=$$each; break; \
	    fi; \
	  done; \
	  if [ -z "$$found" ]; then \
	    echo "Python 3.11, 3.12 or 3.13 with its venv module is needed, and was not found; make PYTHON=/path/to/python" >&2; \
	    exit 1; \
	  fi; \
	  echo "making $(VENV) with $$($$found --version)"; \
	  $$found -m venv --clear $(VENV); \
	fi; \
	quiet=--quiet; [ -t 1 ] && quiet=; \
	echo "installing the package, Spark and the tools of tests and demo into $(VENV): 2 GB, about a minute"; \
	$(RUN) -m pip install $$quiet --no-compile --disable-pip-version-check --upgrade 'pip>=25.1'; \
	$(RUN) -m pip install $$quiet --no-compile --disable-pip-version-check --editable . --group test --group demo; \
	if ! $(RUN) -c 'import os; from freshviews.spark.java import java_home; java_home(os.environ)' 2>/dev/null; then \
	  echo "no Java 17 to 21 is here; installing one into $(VENV): 0.2 GB"; \
	  $(RUN) -m pip install $$quiet --no-compile --disable-pip-version-check --editable '.[java]'; \
	fi; \
	echo "$(VENV) is ready"
	@touch $(READY)

demo: $(READY)
	@$(RUN) -m demo

demo-kafka: $(READY)
	@$(RUN) -m demo.shop

test: $(READY)
	@$(RUN) -m tests quick -n $(JOBS) --dist worksteal

test-change: $(READY)
	@$(RUN) -m tests change -n $(JOBS) --dist worksteal --durations 20 --durations-min 1

test-all: $(READY)
	@$(RUN) -m tests full -n $(JOBS) --dist worksteal --durations 20 --durations-min 1

warm: $(READY)
	@$(RUN) -m freshviews.cli warm

fuzz: $(READY)
	@FRESHVIEWS_SEED=$(SEED) FRESHVIEWS_FUZZ_SHARE=$(SHARE) $(RUN) -m tests fuzz -n $(JOBS) --dist worksteal

spark-agreement: $(READY)
	@$(RUN) -m tests.agreement.spark_agreement --queries $(QUERIES) $(if $(SEED),--seed $(SEED))

states: $(READY)
	@$(RUN) -m tests.agreement.states --states $(STATES) $(if $(SEED),--seed $(SEED))

mutants: $(READY)
	@$(RUN) -m tests.agreement.mutants --seconds $(SECONDS) $(if $(SEED),--first $(SEED))

flips: $(READY)
	@$(RUN) -m tests.engine.arrow_flips --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))
	@FRESHVIEWS_PURE_PYTHON=1 $(RUN) -m tests.engine.arrow_flips --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

soak: $(READY)
	@$(RUN) -m tests.soak

soak-spark: $(READY)
	@$(RUN) -m tests.spark.soak

# In a venv of its own, as the package comes from pip without extras; then once more beside the compiled form of sqlglot,
# which other tools bring.
without-spark: $(READY)
	@$(RUN) -m venv --clear $(VENV)-bare
	@$(VENV)-bare/bin/python -m pip install --quiet --disable-pip-version-check .
	@cd / && $(CURDIR)/$(VENV)-bare/bin/python -I $(CURDIR)/tests/without_spark.py
	@$(VENV)-bare/bin/python -m pip install --quiet --disable-pip-version-check 'sqlglot[c]'
	@cd / && $(CURDIR)/$(VENV)-bare/bin/python -I $(CURDIR)/tests/without_spark.py

oldest: $(READY)
	@$(RUN) -m venv --clear $(VENV)-oldest
	@$(RUN) -m tests.oldest > $(VENV)-oldest/constraints.txt
	@$(VENV)-oldest/bin/python -m pip install --quiet --disable-pip-version-check \
	  --constraint $(VENV)-oldest/constraints.txt . pytest hypothesis duckdb pandas polars
	$(VENV)-oldest/bin/python -m pytest tests/sql tests/expr tests/rules tests/stream tests/catalog

# The newest Spark. Tests of connectors that have no package for it skip. All else is that of the first environment.
newest-spark: $(READY)
	@$(RUN) -m venv --clear $(VENV)-newest
	@$(RUN) -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	  > "$$($(VENV)-newest/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/others.pth"
	@$(VENV)-newest/bin/python -m pip install --quiet --disable-pip-version-check --no-deps 'pyspark>=4.2,<5'
	PYTHONPATH=src $(VENV)-newest/bin/python -m pytest tests/spark tests/cli

kills: $(READY)
	KILLS=$(KILLS) $(RUN) -m pytest tests/spark/test_kills.py tests/spark/test_homes.py tests/spark/test_full_disk.py tests/spark/test_clusters.py tests/spark/test_object_store.py tests/spark/test_hdfs.py tests/spark/test_refilling.py tests/spark/test_evolution.py tests/spark/test_jdbc.py tests/spark/test_kafka.py tests/spark/test_polling.py tests/spark/test_delta.py tests/spark/test_iceberg.py tests/spark/test_filling.py

lint: $(READY)
	$(RUN) -m ruff check .
	$(RUN) -m mypy

# Takes minutes: each environment gets all that freshviews needs. Python 3.11, 3.12 and 3.13, as far as they are here.
dist: $(READY)
	@$(RUN) -m venv --clear $(VENV)-dist
	@$(VENV)-dist/bin/python -m pip install --quiet --disable-pip-version-check --upgrade build twine
	@$(VENV)-dist/bin/python -m tests.distribution

clean:
	rm -rf $(VENV) $(VENV)-bare $(VENV)-dist $(VENV)-newest $(VENV)-oldest build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# What the benchmarks need, and the peers with environments of their own; one that cannot be installed is told as missing.
# The crates take many minutes to build: python -m benchmarks install differential dbsp.
bench-ready: $(READY)
	@$(RUN) -m pip install --quiet --disable-pip-version-check --group bench
	@$(RUN) -m benchmarks install pathway flink cpp || true

bench: bench-ready
	@$(RUN) -m benchmarks quick $(BENCH)

bench-full: bench-ready
	@$(RUN) -m benchmarks full $(BENCH)

bench-check: $(READY)
	@$(RUN) -m pip install --quiet --disable-pip-version-check --group bench
	@$(RUN) -m benchmarks check
