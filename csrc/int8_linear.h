// The plain C interface of int8 linear layers: quantise rows, multiply, and finish what comes out, in one call.
//
//   out = norm(activation(inputs weights' + bias) + residual)
//
// Inputs are rows of float32 or bfloat16, quantised here, each by itself, or codes that an earlier call left. Results are such
// rows, or codes for the next call, or both. A row of codes has two marks, a scale and the code of 0: a value is the scale times how
// far its code lies from that of 0. A row with a number that is not finite has the scale NaN, and all made from it is NaN.
//
// As in sparse_attention.h every array goes with its size in bytes, all of it is checked before any of it is read, and what
// does not fit is answered with a code. src/sparsebert/layers/int8_library.py mirrors the structures.
#pragma once
#include "sparse_attention.h"

extern "C" {
#pragma GCC visibility push(default)

// SB_PORTABLE .. SB_AVX512 as for attention, and one more for this kernel.
enum { SB_VNNI = 3 };  // AVX-512 with its instruction for sums of products of bytes

enum { SB_AS_IS = 0, SB_GELU = 1, SB_RELU = 2 };

// Weights lie in units of SB_UNIT outputs and steps of SB_STEP inputs: [units, steps, SB_UNIT, SB_STEP], filled up with 0.
enum { SB_UNIT = 16, SB_STEP = 4, SB_WIDEST = 32768 };

struct sb_matrix {
  void* data;
  int64_t bytes;  // from data to the end of its memory
  int64_t row;    // elements from one row to the next
};

struct sb_linear {
  int64_t bytes;  // of this structure, as the caller knows it
  int64_t rows, inputs, outputs;
  int64_t value_type;     // of values: SB_FLOAT32 or SB_BFLOAT16
  sb_matrix values;       // [rows, inputs], or none where codes come in
  sb_matrix codes;        // uint8 [rows, inputs], or none
  sb_array marks;         // float32 [rows, 2], with codes
  sb_array weights;       // int8 [units, steps, SB_UNIT, SB_STEP]
  sb_array weight_sums;   // int32 [units * SB_UNIT]: of each output's weights
  sb_array weight_scales; // float32 [units * SB_UNIT]
  sb_array bias;          // float32 [units * SB_UNIT]
  int64_t activation;
  sb_matrix residual;      // float32 [rows, outputs], or none
  sb_array norm_weight;    // float32 [outputs], or none
  sb_array norm_bias;      // float32 [outputs], with norm_weight
  double epsilon;          // of the norm
  int64_t out_type;        // of out: SB_FLOAT32 or SB_BFLOAT16
  sb_matrix out;           // [rows, outputs], or none
  sb_matrix out_codes;     // uint8 [rows, outputs], or none
  sb_array out_marks;      // float32 [rows, 2], with out_codes
  int64_t threads, isa;
};

int sb_run_linear(const sb_linear* call);

// A step is a linear call or a forward of attention: several of them, such as the layers of an encoder, run one after
// another in one call from outside, each checked as it would be by itself.
enum { SB_LINEAR_STEP = 0, SB_ATTENTION_STEP = 1 };

struct sb_step {
  int64_t kind;
  const void* call;  // sb_linear, or sb_call
};

int sb_run_steps(const sb_step* steps, int64_t count);

// The best instruction set this processor has, as SB_PORTABLE .. SB_VNNI.
int sb_best_linear_isa();
#pragma GCC visibility pop
}
