#!/usr/bin/env bash
# Installs SLURM's daemons from Debian's packages where they are missing and can be had. Nothing is
# left running: the tests start their own. Where it cannot be done they skip, and this says why.
set -euo pipefail

PACKAGES=(slurm-wlm munge)
PROGRAMS=(slurmctld slurmd munged)
PATH=$PATH:/usr/sbin

if type -P "${PROGRAMS[@]}" >/dev/null; then # all of them, where `command -v` takes one for all
    exit 0
fi
if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
    echo "${PACKAGES[*]}: missing, and they take root and apt-get: the tests will skip" >&2
    exit 0
fi

# The packages' scripts would start the daemons.
POLICY=/usr/sbin/policy-rc.d
if [ ! -e $POLICY ]; then
    printf '#!/bin/sh\nexit 101\n' >$POLICY
    chmod +x $POLICY
    trap 'rm -f $POLICY' EXIT
fi
{ timeout 120 apt-get update -qq &&
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${PACKAGES[@]}"; } \
    >/dev/null 2>&1 || echo "${PACKAGES[*]} could not be installed: the tests will skip" >&2
