#!/bin/sh
# create.sh FOLDER LOCK [PROJECT]: create or update an environment; see python.sh and install.py.
set -eu
here=$(dirname "$0")
python=$(sh "$here/python.sh")
mkdir -p "$1" 2>/dev/null && [ -w "$1" ] || {
    echo "make: $1: cannot be written; work in a copy of the repository" >&2
    exit 1
}
version='import sys; print(sys.version_info[:2])'
if [ -e "$1/bin/python" ] && [ "$("$1/bin/python" -c "$version")" = "$("$python" -c "$version")" ]; then
    clear=
else
    clear=--clear
fi
"$python" -m venv $clear "$1"
folder=$1
shift
"$folder/bin/python" "$here/install.py" "$@"
touch "$folder/ready"
