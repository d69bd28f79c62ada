#!/bin/sh
# lock.sh UV [--upgrade]: pins every package of pyproject.toml, with the hashes of its files, with this
# uv. A lock serves all platforms and Pythons. Without --upgrade, versions stay.
set -eu
uv=$1
shift

pin() { # pin FILE OPTION…
    file=envs/$1
    shift
    "$uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
        --custom-compile-command 'make lock' --output-file "$file" "$@"
}

# rocrate needs pkg_resources, which later versions of setuptools lack.
limits=$(mktemp)
trap 'rm -f "$limits"' EXIT
echo 'setuptools<81' > "$limits"
pin requirements.lock pyproject.toml --extra dev --constraint "$limits" "$@"
pin requirements-flower.txt pyproject.toml --extra dev --extra flower --constraint "$limits" "$@"
pin requirements-pfl.txt pyproject.toml --extra dev --extra pfl --constraint "$limits" "$@"
pin requirements-docs.txt --group docs --constraint "$limits" "$@"
pin requirements-mutants.txt --group mutants --constraint envs/requirements.lock "$@"
pin requirements-types.txt --group types --constraint envs/requirements.lock "$@"

# PyPI has no CPU builds of PyTorch for Linux. Their hashes, for all Pythons and processors, are those
# of PyTorch's own index; if that is not in reach, they stay.
sed -n 's/^\(torch\(vision\)*==[0-9.]*\).*/\1+cpu/p' envs/requirements.lock |
    pin torch-cpu.lock --no-deps --torch-backend cpu - ||
    echo "lock.sh: torch-cpu.lock stays: PyTorch's own index is not in reach" >&2
