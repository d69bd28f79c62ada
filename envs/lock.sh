#!/bin/sh
# lock.sh BIN [--upgrade]: pins every package of pyproject.toml, with the hashes of its files, with
# the uv and pip in BIN. A lock serves all platforms and Pythons. Without --upgrade, versions stay.
set -eu
bin=$1
shift
options="--quiet --universal --python-version 3.11 --generate-hashes --no-annotate"

pin() { # pin FILE OPTION…
    file=envs/$1
    shift
    # rocrate needs pkg_resources, which later versions of setuptools lack.
    echo 'setuptools<81' | "$bin/uv" pip compile $options --custom-compile-command 'make lock' \
        --constraint - --output-file "$file" "$@"
}

pin requirements.lock pyproject.toml --extra dev "$@"
pin requirements-flower.txt pyproject.toml --extra dev --extra flower "$@"
pin requirements-pfl.txt pyproject.toml --extra dev --extra pfl "$@"
pin requirements-docs.txt --group docs "$@"
pin requirements-mutants.txt --group mutants --constraint envs/requirements.lock "$@"

# The package index has no CPU builds of PyTorch for Linux. If pip finds them elsewhere, their hashes
# (one for each Python) are written to torch-cpu.lock; otherwise the file stays.
torch=$(sed -n 's/^\(torch==[0-9.]*\).*/\1+cpu/p' envs/requirements.lock)
wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
for python in 3.11 3.12 3.13; do
    "$bin/pip" download --quiet --no-deps --only-binary :all: --python-version "$python" \
        --dest "$wheels" "$torch" || echo "lock.sh: no $torch for Python $python" >&2
done
if [ -n "$(ls "$wheels")" ]; then
    { echo "# This file was made by 'make lock'."
      echo "$torch$(sha256sum "$wheels"/* | sed 's/\([0-9a-f]*\) .*/ --hash=sha256:\1/' | tr -d '\n')"
    } > envs/torch-cpu.lock
fi
