#!/usr/bin/env bash
# Builds the kernel with the address and undefined-behaviour sanitizers and runs check_memory.cpp under them.
set -euo pipefail
cd "$(dirname "$0")"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
flags="-O1 -g -std=c++17 -fno-math-errno -fno-trapping-math -ffp-contract=fast -Wno-psabi -fopenmp"
flags="$flags -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
declare -A sets=([portable]="" [avx2]="-mavx2 -mfma" [avx512]="-mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma")
for name in "${!sets[@]}"; do
  ${CXX:-g++} $flags ${sets[$name]} -DSB_RUN="run_$name" -c kernel.cpp -o "$out/$name.o"
done
${CXX:-g++} $flags "$out"/*.o interface.cpp indices.cpp check_memory.cpp -o "$out/check"
# The scratch of threads that are still waiting for work at the end is not a leak.
ASAN_OPTIONS=detect_leaks=0 "$out/check"
