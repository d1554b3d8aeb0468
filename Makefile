# `make demo` and `make test` set up everything they need. Knobs: PYTHON, BENCH_CACHE, SOAK_MINUTES, WAITERS.

PYTHON ?= $(or $(shell python3 .ci/interpreter.py),python3)
SOAK_MINUTES ?= 120
WAITERS ?= 6
VENV := .venv
BIN := $(VENV)/bin

# Where it is set, every process of a test would compile all of harness/ again: a third of its CPU time.
unexport PYTHONDONTWRITEBYTECODE

# Of the marks in $(1); what fails is run again, and says so.
define waiting
$(BIN)/python -m pytest tests/integration -m "$(1)" --numprocesses $(WAITERS) --dist loadgroup --no-loadscope-reorder --quiet || { echo "Again, alone:"; \
	$(BIN)/python -m pytest tests/integration -m "$(1)" --numprocesses 1 --dist loadgroup --quiet --last-failed --last-failed-no-failures none; }
endef

define alone
$(BIN)/python -m pytest tests/integration -m "$(1)" --quiet || { echo "Again, once:"; \
	$(BIN)/python -m pytest tests/integration -m "$(1)" --quiet --last-failed --last-failed-no-failures none; }
endef

.PHONY: help demo environment unit integration integration-wait integration-time integration-long test coverage lint types engines engines-once engines-installed engines-slow compose cluster browser kit-rehearsal peers night trackers packaging chaos mutants soak studies studies-quick bench package release-check image pictures recording site ci clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 20

# Python compiles a module when it is first imported; most of what is installed never is.
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --editable

$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) '.[dev]'
	@touch $@

$(VENV)/docs: $(VENV)/ready
	$(INSTALL) '.[docs]'
	@touch $@

environment: ## what the lanes of the gate run in, installed at once
	[ $(VENV)/docs -nt pyproject.toml ] || { $(PYTHON) -m venv $(VENV) && $(INSTALL) '.[dev,docs]'; }
	@touch $(VENV)/ready $(VENV)/docs

demo: $(VENV)/ready ## a real engine and a real model: llama.cpp with its prefix cache on and off
	$(BIN)/bench run --scenario shared-prefix --backends llamacpp,llamacpp@no-prefix-cache --concurrency 2 --repeats 3 --requests 8 --output-tokens 16 --set prompts.prefix_tokens=128 --set load.min_answers=8 --set load.min_seconds=1 --no-agreement

unit: $(VENV)/ready ## unit tests, on all cores; HYPOTHESIS_PROFILE=ci draws new examples, and more
	$(BIN)/python -m pytest tests/unit --numprocesses auto --dist worksteal --quiet

integration: integration-wait integration-time integration-long ## integration tests

integration-wait: $(VENV)/ready ## those that mostly wait for processes and sockets: WAITERS at a time
	$(call waiting,not time and not long)

integration-time: $(VENV)/ready ## those with claims about time, alone; what fails is run again once
	$(call alone,time and not long)

integration-long: $(VENV)/ready ## the long ones, in both ways: their parts are tested by the others
	$(call waiting,long and not time)
	$(call alone,long and time)

test: $(VENV)/ready ## unit tests next to integration tests that wait, then those of time alone
	$(BIN)/python .ci/lanes.py test

# Where a test lets no file grow, coverage's own file of that process is cut off.
coverage: $(VENV)/ready ## lines of harness/ that unit and integration tests run, in every process; twenty minutes
	rm -rf build/coverage && mkdir -p build/coverage
	-$(BIN)/coverage run -m pytest tests/unit --numprocesses auto --dist worksteal --quiet
	-$(BIN)/coverage run -m pytest tests/integration -m "not time" -k "not (files and (byte or KiB))" --numprocesses $(WAITERS) --dist loadgroup --quiet
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

lint: $(VENV)/ready ## style of the code, and the language of pages and messages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python .ci/prose.py

types: $(VENV)/ready ## static types
	$(BIN)/mypy

engines: $(VENV)/ready ## tests on real llama.cpp, vLLM and SGLang (installs about 7 GB once)
	$(BIN)/python -m pytest tests/engines --ignore tests/engines/slow

engines-once: $(VENV)/ready ## of these tests, llama.cpp's own and one run of each engine: the gate, a quarter of the time
	$(BIN)/python -m pytest tests/engines/test_bench_run.py tests/engines/test_llamacpp.py tests/engines/test_random_weights.py \
	tests/engines/test_apis.py tests/engines/test_versions.py \
	tests/engines/test_vllm.py::test_vllm_knows_every_flag_of_every_variant --durations 12

engines-installed: $(VENV)/ready ## what `make engines` and `make compose` start, installed once into the cache
	$(BIN)/bench engines install llamacpp vllm sglang

engines-slow: $(VENV)/ready ## real answers compared, structured output, and the other engines that run on a CPU: an hour with what is compiled; not in `make ci`
	$(BIN)/python -m pytest tests/engines/slow

compose: $(VENV)/ready ## tests in containers: needs Docker, Compose, debootstrap and root, no registry
	$(BIN)/python -m pytest tests/compose

cluster: $(VENV)/ready ## load from two nodes of a Ray cluster in network and time namespaces: needs Linux, root, iproute2
	$(BIN)/python -m pip install --quiet --editable '.[ray]' 'ray[client]'
	$(if $(filter 0,$(shell id -u)),,sudo -E) $(BIN)/python -m pytest tests/cluster

AXE := build/axe/node_modules/axe-core/package.json

$(AXE):
	npm install --prefix build/axe --no-save --no-audit --no-fund --ignore-scripts --silent axe-core@4.14.1

browser: $(VENV)/ready $(AXE) site ## report and documentation site in headless Chromium, and what axe-core finds in them; needs npm
	$(BIN)/python -m pytest tests/browser --numprocesses 2 --dist loadgroup

kit-rehearsal: $(VENV)/ready ## docs/gpu-box.md without network and GPU, llama.cpp compiled: needs Linux, root, uv, CMake, ninja; BOX=PYTHON
	bash .ci/kit-rehearsal build/kit-rehearsal $(BOX)

peers: $(VENV)/ready ## the newest clients of others against the scripted server; needs vLLM installed, Python 3.12 (PEERS_PYTHON), a package index
	$(BIN)/bench engines install vllm
	$(BIN)/python -m tests.bench.newest_peers

night: $(VENV)/ready ## the lanes of a night: `make peers`
	$(BIN)/python .ci/lanes.py night

trackers: $(VENV)/ready ## `bench publish` with MLflow and W&B, offline
	$(BIN)/python -m pip install --quiet --editable '.[mlflow,wandb]'
	$(BIN)/python -m pytest tests/trackers

packaging: $(VENV)/ready ## the wheel through the sdist, from an empty directory
	$(BIN)/python -m pytest tests/packaging

chaos: $(VENV)/ready ## foreign data, damaged files, a full disk, processes that die or stand still: hours
	$(BIN)/python -m tests.bench.chaos parsers --seed 1 --seconds 7200
	$(BIN)/python -m tests.bench.chaos flips --seconds 7200
	$(BIN)/python -m tests.bench.chaos folders --seconds 7200
	$(BIN)/python -m tests.bench.chaos places
	$(BIN)/python -m tests.bench.chaos writes --seconds 7200
	$(BIN)/python -m tests.bench.chaos processes --seconds 7200
	$(BIN)/python -m tests.bench.chaos freezes
	$(BIN)/python -m tests.bench.chaos moments --seconds 7200

mutants: $(VENV)/ready ## 25 mutants of each of twenty rooms, and which of them no unit test notices: an hour
	$(BIN)/python -m pip install --quiet --editable '.[mutants]'
	$(BIN)/python -m tests.bench.mutants

soak: $(VENV)/ready ## memory and descriptors of every process over SOAK_MINUTES, two hours by default
	$(BIN)/python -m tests.bench.soak --minutes $(SOAK_MINUTES)

studies: $(VENV)/ready ## statistical studies behind the figures in docs: about two hours
	$(BIN)/python -m tests.bench.rates
	$(BIN)/python -m tests.bench.verdict_study
	$(BIN)/python -m tests.bench.per_user_study
	$(BIN)/python -m tests.bench.per_user_study --unit starts --times 200
	$(BIN)/python -m tests.bench.per_user_study --unit blocks --repeats 40 --times 100
	$(BIN)/python -m tests.bench.capacity_study --times 13
	$(BIN)/python -m tests.bench.capacity_study --disturbed --times 8 --only "20/s, constant"
	$(BIN)/python -m tests.bench.capacity_study --wire 1 --seconds 4
	$(BIN)/python -m tests.bench.coverage
	$(BIN)/python -m tests.bench.upper_bounds
	$(BIN)/python -m tests.bench.median_gaps

studies-quick: $(VENV)/ready ## the same studies with fewer experiments, and fuzzed streams
	$(BIN)/python -m tests.bench.upper_bounds --times 500
	$(BIN)/python -m tests.bench.median_gaps --times 1000
	$(BIN)/python -m tests.bench.coverage --times 100
	$(BIN)/python -m tests.bench.rates --times 100
	$(BIN)/python -m tests.bench.capacity_study --times 1 --only 20/s
	$(BIN)/python -m tests.bench.verdict_study --times 400 --rows 2
	$(BIN)/python -m tests.bench.verdict_study --times 100 --rows 5
	$(BIN)/python -m tests.bench.per_user_study --times 100
	$(BIN)/python -m tests.bench.fuzz_streams --count 50000 --seconds 45

bench: $(VENV)/ready studies ## benchmarks of the harness itself, and the studies
	$(BIN)/python -m tests.bench.exactness
	$(BIN)/python -m tests.bench.request_cost
	$(BIN)/python -m tests.bench.sampler_cost
	$(BIN)/python -m tests.bench.fuzz_streams --count 100000 --seconds 120
	$(BIN)/python -m tests.bench.planning
	$(BIN)/python -m tests.bench.growth

package: $(VENV)/ready ## sdist, and the wheel built from it
	$(BIN)/python -m build --outdir dist

pictures: $(VENV)/ready ## take the pictures of the documentation again; needs Chromium
	$(BIN)/python -m tests.browser.pictures

.PHONY: pages
pages: $(VENV)/ready ## write the tables of docs/ that are made of the code again
	$(BIN)/python .ci/pages

recording: $(VENV)/ready ## record docs/recording.svg again, from a published run
	$(BIN)/python .ci/recording.py

site: $(VENV)/docs ## the documentation site, into build/site: links checked, no warning let pass
	$(BIN)/python .ci/recording.py --check
	$(BIN)/python .ci/site.py
	$(BIN)/zensical build --clean --strict

release-check: ## what a tag would publish, built twice, checked and listed (SBOM) into dist/
	PYTHON=$(PYTHON) bash .ci/release dist

image: ## the container image of bench itself: docs/docker.md
	docker build --build-arg BENCH_COMMIT=$$(git rev-parse HEAD) --tag llm-servebench .

ci: ## the gate: every lane that CI runs but the longest, in queues (.ci/lanes.toml)
	bash .ci/run

clean: ## what is made in this folder; the cache of engines and models stays
	rm -rf $(VENV) .venv-release dist build mutants .mypy_cache .pytest_cache .ruff_cache .hypothesis
