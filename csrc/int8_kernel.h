// What the int8 kernel works on: a call that was checked, cut into blocks of rows.
#pragma once
#include "int8_linear.h"

// Each build of int8_kernel.cpp offers one of these: rows [from, to) of the call. `memory`: scratch of this thread.
using RunRows = void (*)(const sb_linear&, int64_t from, int64_t to, char* memory);

void run_rows_portable(const sb_linear&, int64_t, int64_t, char*);
void run_rows_avx2(const sb_linear&, int64_t, int64_t, char*);
void run_rows_avx512(const sb_linear&, int64_t, int64_t, char*);

inline int64_t units_of(const sb_linear& c) { return (c.outputs + SB_UNIT - 1) / SB_UNIT; }
inline int64_t steps_of(const sb_linear& c) { return (c.inputs + SB_STEP - 1) / SB_STEP; }
