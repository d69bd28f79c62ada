#!/bin/sh
# create.sh FOLDER LOCK [PROJECT]: create or update an environment; see python.sh and install.py.
set -eu
here=$(dirname "$0")
python=$(sh "$here/python.sh")
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
