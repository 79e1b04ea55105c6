# Every target works from nothing: it creates .venv and installs what is pinned.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
DOCS_READY := $(VENV)/.docs-ready

# Threads that sleep while they wait do not hold each other up on a busy machine.
export OMP_WAIT_POLICY ?= passive

.PHONY: demo test test-all docs evidence lint style types pytest bench bench-scale clean

demo: $(READY)
	$(BIN)/plap demo

# Types are checked beside the tests, on whatever core is free.
test: style
	$(MAKE) -j2 types pytest

test-all: lint $(DOCS_READY)
	HYPOTHESIS_PROFILE=new $(BIN)/python -m pytest

# The site in docs/_build/html: no network, and every warning is an error.
docs: $(DOCS_READY)
	rm -rf docs/api/generated
	$(BIN)/python -m sphinx -W --keep-going -q -j 2 docs docs/_build/html
	@echo "Open docs/_build/html/index.html"

# The page of reproduced tables, its summary in docs/reproduction.md and the package's best.json, from the published runs in results/.
evidence: $(READY)
	$(BIN)/python docs/figures/reproduced_tables.py

# A process per core (at most four, a gigabyte each) with one thread each: threads would only take cores from
# one another. Tests of several threads ask for them.
pytest: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python tests/warm_kernels.py
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not long" -n logical --maxprocesses 4 --dist worksteal

lint: style types

style: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/plap bench propagation --json-out benchmarks/propagation.json
	$(BIN)/plap bench solve --json-out benchmarks/solve.json

# Takes about an hour, 7 GiB, and the benchmark data sets in $PLAP_DATA.
bench-scale: $(READY)
	$(BIN)/plap bench scale --json-out benchmarks/scale.json
	$(BIN)/plap bench ddp-scaling --json-out benchmarks/ddp_scaling.json
	$(BIN)/plap bench parts --json-out benchmarks/parts.json

# PyTorch goes in by its pinned version before anything else may ask for a range of it.
$(READY): requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check "$$(grep '^torch==' requirements.txt)"
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

$(DOCS_READY): requirements-docs.txt $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-docs.txt
	touch $@

clean:
	rm -rf docs/_build docs/api/generated docs/gallery $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
