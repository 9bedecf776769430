# `make demo` and `make test` each set up all they need; see README.md.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: demo test test-slow bench check format lint types imports install dev clean
.DEFAULT_GOAL := help

help:
	@echo "make demo       set up, train PPC and its baseline side by side, draw the figure (about 4 minutes)"
	@echo "make test       set up, run the default tests (under 10 minutes on 2 cores)"
	@echo "make test-slow  the tests that train for minutes"
	@echo "make bench      every claim about speed as a ratio to a peer, and the tables of them (under 20 minutes)"
	@echo "make check      format, lint, types, import order, and make test"
	@echo "make install    the library alone, in $(VENV)"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "lengen needs Python 3.11 or newer; $(PYTHON) is older: try make PYTHON=python3.12"; exit 2; }
	$(PYTHON) -m venv $(VENV)

# torch first and by its exact version: a looser requirement pulls gigabytes of CUDA on a CPU machine.
$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

$(VENV)/.ray: $(VENV)/.dev
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[ray]'
	@touch $@

install: $(VENV)/.installed
dev: $(VENV)/.dev

demo: $(VENV)/.installed
	$(BIN)/lengen demo --out runs/demo

test: $(VENV)/.dev
	OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 $(BIN)/pytest -n 2 --dist loadgroup -m 'not slow'

test-slow: $(VENV)/.ray
	OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 $(BIN)/pytest -n 2 --dist loadgroup -m slow

# Threads that sleep instead of spinning while they wait: on a busy machine, spinning measures the other jobs.
bench: $(VENV)/.dev
	OMP_WAIT_POLICY=passive HF_HUB_OFFLINE=1 $(BIN)/lengen bench --out results/bench --page README.md --page docs/performance.md

format: $(VENV)/.dev
	$(BIN)/ruff format --check .

lint: $(VENV)/.dev
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

imports: $(VENV)/.dev
	$(BIN)/lint-imports

check: format lint types imports test

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
