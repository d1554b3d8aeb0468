# `make demo` and `make test` set up everything they need. Knobs: PYTHON, BENCH_CACHE.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: help demo test lint types engines compose browser bench package ci clean

help: ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 12

$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

demo: $(VENV)/ready ## a real engine and a real model: llama.cpp with its prefix cache on and off
	$(BIN)/bench run --scenario shared-prefix --backends llamacpp,llamacpp@no-prefix-cache --concurrency 4 --repeats 3 --requests 16 --no-agreement

test: $(VENV)/ready ## unit and integration tests
	$(BIN)/python -m pytest

lint: $(VENV)/ready ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/ready ## static types
	$(BIN)/mypy

engines: $(VENV)/ready ## tests on real llama.cpp, vLLM, transformers, mlx-lm (downloads about 6 GB once)
	$(BIN)/python -m pytest tests/engines

compose: $(VENV)/ready ## tests in containers: needs Docker, Compose, debootstrap and root, no registry
	$(BIN)/python -m pytest tests/compose

browser: $(VENV)/ready ## the report in headless Chromium
	$(BIN)/python -m pytest tests/browser

bench: $(VENV)/ready ## benchmarks of the harness itself
	$(BIN)/python -m tests.bench.exactness
	$(BIN)/python -m tests.bench.verdict_study
	$(BIN)/python -m tests.bench.capacity_study --times 13
	$(BIN)/python -m tests.bench.coverage
	$(BIN)/python -m tests.bench.sampler_cost
	$(BIN)/python -m tests.bench.fuzz_streams --count 100000 --seconds 120
	$(BIN)/python -m tests.bench.planning

package: $(VENV)/ready ## sdist, and the wheel built from it
	$(BIN)/python -m build --outdir dist

ci: ## everything, as CI runs it
	bash .ci/run

clean: ## what is made in this folder; the cache of engines and models stays
	rm -rf $(VENV) dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis
