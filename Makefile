# `make run` shows it work, `make up` keeps it running, `make check` before a commit, `make test` is what CI runs.
# Needs Python 3.11 or newer with pip and venv; everything else goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS := 4
# For two cores: of the time that a slow test takes, half is spent waiting for servers to wake, to sleep and to give up.
REQUIREMENTS := requirements.txt shared/requirements.txt infra/image/requirements.txt $(wildcard functions/*/requirements.txt) model-warmup/requirements.txt

.DEFAULT_GOAL := help
.PHONY: help run up models check check-manifests fix test pins trace fuzz docs clean

help: ## this list
	@grep -hE '^[a-z%-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/.installed: $(REQUIREMENTS)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --disable-pip-version-check -r requirements.txt
	@$(BIN)/python -m compileall -q functions shared model-warmup # or every wake compiles, where PYTHONDONTWRITEBYTECODE is set
	@touch $@

$(VENV)/.tests-installed: $(VENV)/.installed tests/requirements.txt tests/requirements-no-deps.txt
	$(BIN)/pip install --disable-pip-version-check -r tests/requirements.txt
	$(BIN)/pip install --disable-pip-version-check --no-deps -r tests/requirements-no-deps.txt
	@touch $@

models: $(VENV)/.installed ## fetch the default models into .wakeswap/models
	@WAKESWAP_MODEL_CACHE=.wakeswap/models $(BIN)/python model-warmup/main.py --all

run: models ## the demo: two pictures in, a swapped picture out, every function asleep again
	@$(BIN)/python -m infra.local demo

up: models ## keep the local platform running
	@$(BIN)/python -m infra.local up

check check-manifests test: export PYTHONDONTWRITEBYTECODE := # or every process of a run compiles all tests anew

check: $(VENV)/.tests-installed ## lint, types, layers, fast tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q -m "not slow and not gpu" -n 2 --dist worksteal

check-manifests: $(VENV)/.tests-installed ## render all overlays and components, hold them and every seeded fault against the rules
	$(BIN)/pytest -q tests/contract -n 2

fix: $(VENV)/.tests-installed ## format and mend what can be mended (changes files)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: $(VENV)/.tests-installed ## every test that needs no GPU; CHECKED=yes: less those that make check has just run here
	$(BIN)/pytest -q -m "$(if $(CHECKED),slow and )not gpu" -n $(WORKERS) --dist worksteal

docs: $(VENV)/.installed ## write the generated pages anew
	$(BIN)/python docs/generate.py

pins: $(VENV)/.installed ## settle anew what is in an image, after a requirement changed
	$(BIN)/python -m infra.image.pins infra/image/requirements.txt infra/image/pins.txt
	$(BIN)/python -m infra.image.pins --alone infra/image/requirements-gpu.txt infra/image/pins-gpu.txt
	$(BIN)/python -m infra.image.pins infra/image/tools.txt infra/image/tools-pins.txt

trace: models $(VENV)/.tests-installed ## run one job through every stage and draw docs/trace.svg from its spans
	@$(BIN)/python -m tests.local.trace_job

fuzz: $(VENV)/.tests-installed ## 10,000 mutated requests and events against real processes: no server error, no hang, no growth
	@$(BIN)/python -m tests.fuzz

bench-%: $(VENV)/.tests-installed ## bench-cold, bench-fetch, bench-wake, bench-chain, bench-swap, bench-paste, bench-frame, bench-video: a table, and JSON as the last line
	@$(BIN)/python -m tests.benchmarks.bench_$(subst -,_,$*)

clean: ## remove what was installed and fetched
	rm -rf $(VENV) .wakeswap
