// The plain C interface of the sparse attention kernel. No torch headers: tensors arrive as pointers, sizes and strides.
//
//   query, key, value [batch, heads, length, size], any strides whose last one is 1
//   an index: a pattern at one input length, built, checked and owned here, and known by its number
//
// Every call says how large each array is that it hands over, and all of it is checked before any of it is read. A call
// that does not fit is answered with a code of Code; nothing was written then.
//
// Python fills the structures below through ctypes; src/sparsebert/attention/sparse_library.py mirrors them.
#pragma once
#include <cstdint>

extern "C" {
#pragma GCC visibility push(default)

enum { SB_FLOAT32 = 0, SB_FLOAT64 = 1, SB_BFLOAT16 = 2, SB_FLOAT16 = 3 };
enum { SB_PORTABLE = 0, SB_AVX2 = 1, SB_AVX512 = 2 };

enum {
  SB_OK = 0,
  SB_NO_MEMORY = 1,
  SB_BAD_CALL = 2,     // a structure of another size, a null pointer, an unknown type or instruction set, no threads
  SB_BAD_INDEX = 3,    // no index of this number is alive
  SB_BAD_SHAPE = 4,    // sizes that cannot be, or that are not those of the index
  SB_BAD_TENSOR = 5,   // a tensor smaller than its sizes and strides say, or results that lie over each other
  SB_BAD_LENGTHS = 6,  // not one for each example, or one outside 0 .. length
  SB_BAD_BIAS = 7,     // not one for each kept entry
  SB_BAD_WEIGHTS = 8,  // not one for each example and kept entry
  SB_BAD_ROWS = 9,     // what an index is to be built from is not a pattern's rows
  SB_BAD_PART = 10,    // an index has no such array, or it has another size
};

// Sizes are in bytes, so that they stay true whatever type a call says its numbers are of.
struct sb_array {
  void* data;
  int64_t bytes;
};

struct sb_tensor {
  void* data;
  int64_t bytes;             // from data to the end of its memory
  int64_t batch, head, row;  // strides in elements
};

struct sb_call {
  int64_t bytes;  // of this structure, as the caller knows it
  int64_t index;
  int64_t batch, heads, length, size;
  sb_array lengths;  // int64, [batch], or none
  int64_t packed;    // not 0: a tensor is one row of all examples' tokens, each example as long as lengths says
  double scale, dropout;
  uint64_t seed;
  sb_tensor query, key, value, out;
  sb_tensor grad_out, grad_query, grad_key, grad_value;  // backward only
  sb_array bias;       // [kept] or [heads, kept] in the type of the sums, or none
  sb_array grad_bias;  // like bias; backward only
  sb_array weights;    // the kept attention weights [batch, (heads,) kept]; none in a forward that saves none
  int64_t dtype, threads, isa;
};

int sb_forward(const sb_call* call);
int sb_backward(const sb_call* call);

// The best instruction set this processor has, as SB_PORTABLE .. SB_AVX512.
int sb_best_isa();

// An index of a pattern's rows (CSR) for inputs of `length` <= pattern_length: its number, or minus a code.
// token: not 0 when each example's last token plays the pattern's last position.
int64_t sb_index_build(const int64_t* starts, int64_t starts_count, const int32_t* keys, int64_t keys_count,
                       int64_t heads, int64_t pattern_length, int64_t length, int64_t token);
int sb_index_free(int64_t index);

// Arrays of an index, to be copied out: rows first, then columns, each as Part says.
enum Part {
  SB_STARTS,   // int64 [heads, length + 1], positions among all kept entries of the pattern
  SB_OTHERS,   // int32 [kept], sorted inside a line: the keys of a row, the queries of a column
  SB_ENTRIES,  // int32 [kept], columns only: which entry of the rows this is, counted from its head's first
  SB_LONGS,    // int32 [heads, 8], the long lines, then -1
  SB_ORIGIN,   // int64 [kept], rows only: where each entry stands in the whole pattern; empty where in the same place
};
int64_t sb_index_count(int64_t index, int64_t columns, int64_t part);  // elements, or minus a code
int sb_index_copy(int64_t index, int64_t columns, int64_t part, void* to, int64_t bytes);
#pragma GCC visibility pop
}
