#!/usr/bin/env bash
# Builds the kernel with the address and undefined-behaviour sanitizers into the folder $1: a suite of its own (check)
# and the library that Python loads (_sparse_kernel.so).
set -euo pipefail
out=$(realpath "$1")
cd "$(dirname "$0")"
flags="-O1 -g -std=c++17 -fno-math-errno -fno-trapping-math -ffp-contract=fast -Wno-psabi -fopenmp -fPIC"
flags="$flags -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer"
declare -A sets=([portable]="" [avx2]="-mavx2 -mfma -mf16c")
sets[avx512]="-mavx512f -mavx512dq -mavx512bw -mavx512vl -mfma -mf16c"
for name in "${!sets[@]}"; do
  ${CXX:-g++} $flags ${sets[$name]} -DSB_RUN="run_$name" -c kernel.cpp -o "$out/$name.o" &
  ${CXX:-g++} $flags ${sets[$name]} -DSB_RUN_ROWS="run_rows_$name" -c int8_kernel.cpp -o "$out/int8_$name.o" &
done
wait
sources="interface.cpp call.cpp index.cpp int8_call.cpp steps.cpp"
${CXX:-g++} $flags "$out"/*.o $sources check_memory.cpp check_int8.cpp -o "$out/check"
${CXX:-g++} $flags -shared "$out"/*.o $sources -o "$out/_sparse_kernel.so"
