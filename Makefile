# Targets for users and developers; `make` alone lists them.

# The make of macOS, 3.81, applies the PATH below only to commands that go through another shell.
SHELL := /usr/bin/env bash
# Python of the environment; by default the first suitable one, see envs/python.sh.
PYTHON ?=
# Build of PyTorch: cpu, cuda, or auto: CUDA if a GPU is visible.
TORCH ?=
export PYTHON TORCH
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
PYTHONS := 3.11 3.12 3.13
CORES ?= all
# One thread per process: the workflow runs as many processes as there are cores.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export PATH := $(CURDIR)/$(BIN):$(PATH)
# Images of containers often set this; each step is a process and would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE
# Snakemake needs a folder for caches, which some machines do not allow in the home folder.
ifeq ($(shell cache=$${XDG_CACHE_HOME:-~/.cache}; mkdir -p "$$cache" 2>/dev/null && [ -w "$$cache" ] && echo yes),)
export XDG_CACHE_HOME := $(CURDIR)/.snakemake/cache
endif

.DEFAULT_GOAL := help
.PHONY: help reproduce smoke workflow test test-ci test-long test-python mutants test-adapters test-slurm test-slurm-quick check format schema docs dist lock chart-library axe clean

help: ## List the targets
	@awk -F ':[^#]*## ' '/^[a-z-]+:.*## / { printf "%-18s%s\n", $$1, $$2 }' Makefile

# Name of the run, from RUN=my-try or config.yaml; its results go to results/my-try/.
RUN ?= $(filter-out null,$(shell sed -n 's/^run: *\([^ \#]*\).*/\1/p' config.yaml 2>/dev/null))
NAMED = $(if $(RUN),run=$(RUN))

reproduce: CONFIG = $(if $(RUN),--config $(NAMED))
reproduce: workflow ## Report all finished runs: each experiment at its largest finished scale

smoke: CONFIG = --config scale=quick data=embedded $(NAMED)
smoke: workflow ## Check that everything works: quick scale on generated data; not evidence

workflow: $(READY)
	@snakemake --cores $(CORES) --logger fedsampling $(CONFIG)
	@fedsampling verdicts --config results/$(if $(RUN),$(RUN)/)config.json

# One process runs all tests of a file; tests/conftest.py starts with the slowest files. More than
# four processes would not finish sooner, because the slowest file determines the time.
PARALLEL := --numprocesses logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder \
            --durations 20 --durations-min 5

test: $(READY) ## Run all tests except the long ones
	pytest $(PARALLEL)

test-ci: $(READY) ## Run these and the long tests that continuous integration runs, about 100 s
	pytest $(PARALLEL) -m 'not slurm' --ci

test-long: $(READY) $(VENV)/types ## Run all tests, including the long ones
	pytest $(PARALLEL) -m 'not slurm'

# An interpreter that does not start, such as a pyenv shim of a disabled version, counts as missing.
test-python: ## Run the tests with each supported Python that is installed
	@failed=; for version in $(PYTHONS); do \
	    if python$$version --version >/dev/null 2>&1; then \
	        $(MAKE) --no-print-directory $(VENV)-$$version/ready && \
	        echo "Python $$version:" && PATH="$(CURDIR)/$(VENV)-$$version/bin:$$PATH" pytest $(PARALLEL) $(TESTS) \
	            || failed="$$failed $$version"; \
	    else \
	        echo "Python $$version: skipped, no python$$version is installed"; \
	    fi; \
	done; \
	[ -z "$$failed" ] || { echo "make: tests fail with Python$$failed" >&2; exit 1; }

$(PYTHONS:%=$(VENV)-%/ready): $(VENV)-%/ready: envs/requirements.lock pyproject.toml
	PYTHON=python$* sh envs/create.sh $(VENV)-$* $< .

SIZE ?= 100
mutants: $(VENV)/mutants ## Mutation test: share of SIZE random code changes that the tests detect
	python benchmarks/mutants.py --size $(SIZE) $(ONLY)

$(VENV)/mutants $(VENV)/types: $(VENV)/%: envs/requirements-%.txt $(READY)
	$(BIN)/python envs/install.py $<
	touch $@

test-adapters: $(VENV)-flower/ready $(VENV)-pfl/ready ## Test the adapters with their frameworks, each in a separate environment
	$(VENV)-flower/bin/pytest tests/adapters/test_flower.py
	$(VENV)-pfl/bin/pytest tests/adapters/test_pfl.py

$(VENV)-flower/ready $(VENV)-pfl/ready: $(VENV)-%/ready: envs/requirements-%.txt pyproject.toml
	sh envs/create.sh $(VENV)-$* $< .

# Installs SLURM; needs apt and root.
test-slurm: $(READY) ## Test the pipeline on a local SLURM cluster that the tests start
	tests/slurm/install.sh
	pytest -m slurm tests/slurm

test-slurm-quick: $(READY) ## Run the most important SLURM tests
	tests/slurm/install.sh
	pytest -m 'slurm and not long' tests/slurm

check: $(READY) ## Check lint, types, formats and generated files
	ruff check .
	ruff format --check .
	mypy
	snakefmt --check Snakefile workflow
	fedsampling schema --check
	snakemake --lint

format: $(READY) ## Format Python and Snakemake files
	ruff check --fix .
	ruff format .
	snakefmt Snakefile workflow

schema: $(READY) ## Generate config.yaml and the JSON schemas from the typed models
	fedsampling schema

docs: export NO_MKDOCS_2_WARNING = 1
docs: $(VENV)-docs/ready ## Build the documentation in site/; broken links are errors
	$(VENV)-docs/bin/mkdocs build --strict

$(VENV)-docs/ready: envs/requirements-docs.txt
	sh envs/create.sh $(VENV)-docs $<

dist: $(READY) ## Build the wheel and the source archive in dist/
	rm -rf dist
	uv build --quiet --no-build-isolation --python $(BIN)/python

lock: $(READY) ## Pin packages with hashes; UPGRADE=--upgrade selects the newest versions
	sh envs/lock.sh $(BIN)/uv $(UPGRADE)

UPLOT ?= $(shell sed -n 's/.*"version": "\(.*\)".*/\1/p' src/fedsampling/report/vendor/package.json)
chart-library: ## Update the chart library of the report; UPLOT=version; needs npm
	rm -rf build/uplot && mkdir -p build/uplot
	cd build/uplot && npm pack --silent uplot@$(UPLOT) && tar xzf uplot-*.tgz
	cd build/uplot/package && cp dist/uPlot.iife.min.js dist/uPlot.min.css LICENSE package.json \
	    $(CURDIR)/src/fedsampling/report/vendor/

AXE = 4.14.1
axe: ## Download the accessibility checker of the report's tests; needs npm
	rm -rf build/axe && mkdir -p build/axe
	cd build/axe && npm pack --silent axe-core@$(AXE) && tar xzf axe-core-*.tgz

clean: ## Remove all results and logs
	rm -rf results logs benchmarks/runs .snakemake site

$(READY): envs/requirements.lock pyproject.toml
	sh envs/create.sh $(VENV) $< .

# Another TORCH than that of the environment replaces PyTorch.
ifneq ($(filter-out $(shell cat $(VENV)/torch 2>/dev/null),$(TORCH)),)
.PHONY: $(READY)
endif
