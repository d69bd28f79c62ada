#!/usr/bin/env bash
# Snakemake runs this in the new environment, from the working folder.
set -euo pipefail
if [ -f pyproject.toml ]; then
    exec python envs/install.py envs/requirements.lock .
fi
python envs/install.py envs/requirements.lock
# In a folder of `fedsampling init`, copy the package from the environment in which Snakemake runs;
# its `fedsampling` command is still on the PATH.
origin=$("$(sed -n '1s/^#!//p' "$(command -v fedsampling)")" -c \
    'import fedsampling; print(*fedsampling.__path__)')
cp -R "$origin" "$origin"-*.dist-info "$(python -c 'import site; print(site.getsitepackages()[0])')"
printf '#!%s\nfrom fedsampling.cli import main\nmain()\n' "$(command -v python)" > "${CONDA_PREFIX:?}/bin/fedsampling"
chmod +x "$CONDA_PREFIX/bin/fedsampling"
