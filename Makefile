# `make reproduce`, `make smoke` and `make test`: each sets up what it needs.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
CORES ?= all
# One thread per process: the workflow runs as many processes as there are cores.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export PATH := $(CURDIR)/$(BIN):$(PATH)

.PHONY: reproduce smoke workflow test test-long test-slurm test-slurm-quick check format schema docs lock clean

# What is known: each experiment at the best of its scales.
reproduce: CONFIG =
reproduce: workflow

# Quick scale on stand-ins: whether the machine works. It is no evidence.
smoke: CONFIG = --config scale=quick data=embedded
smoke: workflow

# flock keeps a second call from running beside the first, and is let go by the kernel however the
# first ends; so a lock that Snakemake left behind under it is stale.
workflow: $(READY)
	@mkdir -p .snakemake
	@flock --close --nonblock .snakemake/reproduce.lock sh -c ' \
	    rm -rf .snakemake/locks && snakemake --cores $(CORES) --quiet host reason $(CONFIG)' \
	    || { echo "make: did not finish; see above, or another one is running here" >&2; exit 1; }
	@fedsampling verdicts --config results/config.json

test: $(READY)
	pytest

test-long: $(READY)
	pytest -m 'not slurm'

# A SLURM cluster of its own, installed where apt and root can, ended by the tests that start it.
test-slurm: $(READY)
	tests/slurm/install.sh accounting
	pytest -m slurm tests/slurm

# The most telling of them, without accounting.
test-slurm-quick: $(READY)
	tests/slurm/install.sh
	pytest -m 'slurm and not long' tests/slurm

check: $(READY)
	ruff check .
	ruff format --check .
	mypy
	snakefmt --check Snakefile workflow
	fedsampling schema --check
	snakemake --lint

format: $(READY)
	ruff check --fix .
	ruff format .
	snakefmt Snakefile workflow

schema: $(READY)
	fedsampling schema

# The site of docs/ and of the docstrings, in site/; a broken link is an error.
docs: export NO_MKDOCS_2_WARNING = 1
docs: $(VENV)-docs/ready
	$(VENV)-docs/bin/mkdocs build --strict

$(VENV)-docs/ready: envs/requirements-docs.txt
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/pip install -qq --disable-pip-version-check --requirement $<
	touch $@

# Pins what a fresh environment resolves to today.
lock:
	rm -rf $(VENV)-lock && $(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/pip install -qq setuptools==80.9.0 '.[dev]'
	{ echo "# Everything that 'make' installs, pinned; made by 'make lock' from pyproject.toml."; \
	  $(VENV)-lock/bin/pip freeze --all | grep -v -e '^pip==' -e '^fedsampling' | sed 's/+cpu$$//'; } > envs/requirements.lock
	rm -rf $(VENV)-lock build

clean:
	rm -rf results logs benchmarks/runs .snakemake site

$(READY): envs/requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -qq --disable-pip-version-check --requirement envs/requirements.lock
	$(BIN)/pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@
