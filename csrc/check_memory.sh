#!/usr/bin/env bash
# Runs check_memory.cpp under the address and undefined-behaviour sanitizers.
set -euo pipefail
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
bash "$(dirname "$0")/build_sanitized.sh" "$out"
# The scratch of threads that are still waiting for work at the end is not a leak.
ASAN_OPTIONS=detect_leaks=0 "$out/check"
