#!/bin/sh
# install.sh LOCK [PYTHON]: installs the packages of a lock; pip checks every file against its hashes.
# If pip finds the CPU build of PyTorch, it is used, without CUDA's libraries.
set -eu
lock=$1
python=${2:-python}
here=$(dirname "$0")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

entries() { # entries '~' NAMES: the lock's entries with these names; '!~': all others
    awk -v names="^($2)" "/^[^ ]/ { kept = \$0 $1 names } kept" "$lock"
}

# A lock is complete, so no dependency is looked up; pip check confirms it at the end.
# Packages without a wheel are built with the lock's setuptools, not with one that has no hash.
install() {
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes \
        --no-build-isolation "$@"
}

entries '~' 'setuptools==' > "$work/build"
[ ! -s "$work/build" ] || install --requirement "$work/build"
if grep -q '^torch==' "$lock"; then
    if install --requirement "$here/torch-cpu.lock"; then
        entries '!~' 'torch==|triton==|cuda-|nvidia-' > "$work/others"
        lock=$work/others
    else
        echo "install.sh: no CPU build of PyTorch with a known hash; installing the index's" >&2
    fi
fi
install --requirement "$lock"
"$python" -m pip check
