#!/usr/bin/env bash
# Snakemake runs this in the new environment, from the folder of the checkout.
set -euo pipefail
pip install --quiet --requirement envs/requirements.lock
pip install --quiet --no-deps --no-build-isolation --editable .
