#!/bin/sh
# python.sh: print a suitable Python: $PYTHON, or the first suitable one of python3, python3.13,
# python3.12 and python3.11, or one that uv brings. If there is none, say why in one line.
set -eu
here=$(dirname "$0")
range=$(sed -n 's/^requires-python = "\(.*\)"/\1/p' "$here/../pyproject.toml") # >=3.11,<3.14
first=${range#>=3.} first=${first%%,*}
last=$((${range##*<3.} - 1))

case $(uname -s) in
    MINGW* | MSYS* | CYGWIN*)
        echo "make: Windows runs the pipeline in WSL2 only: 'wsl --install', then clone and make there" >&2
        exit 1 ;;
esac

reason() { # reason COMMAND: why it is unsuitable; nothing if it is suitable
    "$1" -c '' 2>/dev/null || { echo "$1 is not installed"; return; }
    "$1" "$here/suitable.py" "$first" "$last" 2>/dev/null || echo "$1 fails to start"
}

if [ -n "${PYTHON:-}" ]; then
    why=$(reason "$PYTHON")
    [ -n "$why" ] || { echo "$PYTHON"; exit; }
    echo "make: PYTHON=$PYTHON: $why" >&2
    exit 1
fi

problem=$(reason python3)
[ -n "$problem" ] || { echo python3; exit; }
minor=$last
while [ "$minor" -ge "$first" ]; do
    [ -n "$(reason "python3.$minor")" ] || { echo "python3.$minor"; exit; }
    minor=$((minor - 1))
done
if command -v uv >/dev/null; then
    echo "$problem; uv brings Python 3.$last" >&2
    uv python find --quiet "3.$last" 2>/dev/null && exit
    uv python install --quiet "3.$last" && uv python find --quiet "3.$last" && exit
fi
echo "make: $problem; install Python 3.$first to 3.$last, or uv, which brings one; or set PYTHON=…" >&2
exit 1
