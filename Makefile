# What can be made, each with what it needs; `make` alone lists it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
CORES ?= all
# One thread per process: the workflow runs as many processes as there are cores.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export PATH := $(CURDIR)/$(BIN):$(PATH)

.DEFAULT_GOAL := help
.PHONY: help reproduce smoke workflow test test-long test-adapters test-slurm test-slurm-quick check format schema docs lock clean

help: ## This list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18

# The run's name, as RUN=my-try or in config.yaml: what it makes goes to results/my-try/.
RUN ?= $(filter-out null,$(shell sed -n 's/^run: *\([^ \#]*\).*/\1/p' config.yaml 2>/dev/null))
NAMED = $(if $(RUN),run=$(RUN))

reproduce: CONFIG = $(if $(RUN),--config $(NAMED))
reproduce: workflow ## What is known: each experiment at the best of its scales

smoke: CONFIG = --config scale=quick data=embedded $(NAMED)
smoke: workflow ## Quick scale on stand-ins: whether the machine works; no evidence

# flock keeps a second call from running beside the first, and is let go by the kernel however the
# first ends; so a lock that Snakemake left behind under it is stale.
workflow: $(READY)
	@mkdir -p .snakemake
	@flock --close --nonblock --conflict-exit-code 9 .snakemake/reproduce.lock sh -c ' \
	    rm -rf .snakemake/locks && exec snakemake --cores $(CORES) --logger fedsampling $(CONFIG)' \
	    || { [ $$? -ne 9 ] || echo "make: another one is running here" >&2; exit 1; }
	@fedsampling verdicts --config results/$(if $(RUN),$(RUN)/)config.json

test: $(READY) ## All tests but the long ones
	pytest

test-long: $(READY) ## The long ones, too
	pytest -m 'not slurm'

test-adapters: $(VENV)-flower/ready $(VENV)-pfl/ready ## The adapters in their frameworks, each in an environment of its own
	$(VENV)-flower/bin/pytest tests/adapters/test_flower.py
	$(VENV)-pfl/bin/pytest tests/adapters/test_pfl.py

$(VENV)-flower/ready $(VENV)-pfl/ready: $(VENV)-%/ready: envs/requirements-%.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)-$*
	$(VENV)-$*/bin/pip install -qq --disable-pip-version-check --requirement $< --editable '.[dev]'
	touch $@

# Installed where apt and root can.
test-slurm: $(READY) ## The pipeline on a SLURM cluster that the tests start and end
	tests/slurm/install.sh accounting
	pytest -m slurm tests/slurm

test-slurm-quick: $(READY) ## The most telling of these, without accounting
	tests/slurm/install.sh
	pytest -m 'slurm and not long' tests/slurm

check: $(READY) ## Lint, types, formats, schemas
	ruff check .
	ruff format --check .
	mypy
	snakefmt --check Snakefile workflow
	fedsampling schema --check
	snakemake --lint

format: $(READY) ## Formats of Python and Snakemake files
	ruff check --fix .
	ruff format .
	snakefmt Snakefile workflow

schema: $(READY) ## config.yaml and JSON schemas, from the typed models
	fedsampling schema

docs: export NO_MKDOCS_2_WARNING = 1
docs: $(VENV)-docs/ready ## The site of docs/ and the docstrings, in site/; a broken link is an error
	$(VENV)-docs/bin/mkdocs build --strict

$(VENV)-docs/ready: envs/requirements-docs.txt
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/pip install -qq --disable-pip-version-check --requirement $<
	touch $@

lock: ## Pins what a fresh environment resolves to today
	rm -rf $(VENV)-lock && $(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/pip install -qq setuptools==80.9.0 '.[dev]'
	{ echo "# Everything that 'make' installs, pinned; made by 'make lock' from pyproject.toml."; \
	  $(VENV)-lock/bin/pip freeze --all | grep -v -e '^pip==' -e '^fedsampling' | sed 's/+cpu$$//'; } > envs/requirements.lock
	rm -rf $(VENV)-lock build

clean: ## Removes all results and logs
	rm -rf results logs benchmarks/runs .snakemake site

$(READY): envs/requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -qq --disable-pip-version-check --requirement envs/requirements.lock
	$(BIN)/pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@
