#!/usr/bin/env bash
# Installs SLURM's daemons from Debian's packages where they are missing and can be had. Nothing is
# left running: the tests start their own. Where it cannot be done they skip, and this says why.
set -euo pipefail

PACKAGES=(slurm-wlm munge slurmdbd mariadb-server)
PATH=$PATH:/usr/sbin

if command -v slurmctld slurmd munged slurmdbd mariadbd >/dev/null; then
    exit 0
fi
if ! command -v apt-get >/dev/null || [ "$(id -u)" -ne 0 ]; then
    echo "SLURM is not installed, and it takes root and apt-get: the tests will skip" >&2
    exit 0
fi

# The packages' scripts would start the daemons.
POLICY=/usr/sbin/policy-rc.d
if [ ! -e $POLICY ]; then
    printf '#!/bin/sh\nexit 101\n' >$POLICY
    chmod +x $POLICY
    trap 'rm -f $POLICY' EXIT
fi
{ apt-get update -qq &&
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${PACKAGES[@]}"; } \
    >/dev/null 2>&1 || echo "SLURM could not be installed from ${PACKAGES[*]}: the tests will skip" >&2
