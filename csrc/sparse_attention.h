// The plain C interface of the sparse attention kernel. No torch headers: tensors arrive as pointers and strides.
//
//   query, key, value [batch, heads, length, size], any strides whose last one is 1
//   a pattern as two sides: its rows (CSR: query -> keys) and its columns (CSC: key -> queries)
//
// Python fills the structures below through ctypes; src/sparsebert/attention/sparse_library.py mirrors them.
#pragma once
#include <cstdint>

extern "C" {
#pragma GCC visibility push(default)

enum { SB_FLOAT32 = 0, SB_FLOAT64 = 1, SB_BFLOAT16 = 2 };
enum { SB_PORTABLE = 0, SB_AVX2 = 1, SB_AVX512 = 2 };

// Lines are worked on in tiles of SB_TILE. A line of more than SB_LONG entries (a border row) is taken apart and worked
// on beside the tiles that use the same keys, so that keys travel from memory once. Where more than SB_MAX_LONG lines
// are that long the pattern is close to dense and nothing is gained: none is treated as long then.
enum { SB_TILE = 32, SB_LONG = 256, SB_MAX_LONG = 8 };

struct sb_tensor {
  void* data;
  int64_t batch, head, row;  // strides in elements
};

// One side of a pattern of `heads` heads. Line i of head h owns entries starts[h, i] .. starts[h, i + 1].
struct sb_side {
  const int64_t* starts;   // [heads, length + 1], positions among all kept entries of the pattern
  const int32_t* others;   // [kept], sorted inside a line: the keys of a row, the queries of a column
  const int32_t* entries;  // columns only: [kept], which entry of the rows this is, counted from its head's first
  const int32_t* low;      // [heads, tiles], the tile's first other, the other side's long lines left out
  const int32_t* reach;    // [heads, tiles], one past the tile's last other, likewise
  const int32_t* longs;    // [heads, SB_MAX_LONG], the long lines, then -1
};

struct sb_problem {
  int64_t batch, heads, length, size;
  int64_t pattern_heads;  // 1 or heads
  int64_t kept;           // kept entries of the whole pattern
  sb_side rows, columns;
  const int64_t* lengths;  // [batch] or null
  int64_t token;           // not 0: each example's last token plays the pattern's last position
  double scale, dropout;
  uint64_t seed;
  sb_tensor query, key, value, out;
  sb_tensor grad_out, grad_query, grad_key, grad_value;
  const void* bias;     // [kept] or [heads, kept] in the type of the sums, or null
  int64_t bias_stride;  // elements from one head's bias to the next: 0 when shared
  void* grad_bias;      // like bias, or null
  void* weights;        // the kept attention weights [batch, (heads,) kept]; null in a forward that saves none
  int64_t dtype, threads, isa;
};

// Each returns 0, or 1 when memory ran out.
int sb_forward(const sb_problem* problem);
int sb_backward(const sb_problem* problem);

// The best instruction set this processor has, as SB_PORTABLE .. SB_AVX512.
int sb_best_isa();
// 1 for each entry whose attention weight survives dropout, for one batch element and head.
void sb_survivors(const sb_problem* problem, int64_t batch, int64_t head, uint8_t* survives);

// Builds an index for inputs of `length` <= pattern length: first the number of entries, then the arrays.
int64_t sb_crop_count(const int64_t* starts, const int32_t* keys, int64_t heads, int64_t pattern_length, int64_t length,
                      int64_t token);
void sb_crop(const int64_t* starts, const int32_t* keys, int64_t heads, int64_t pattern_length, int64_t length,
             int64_t token, int64_t* new_starts, int32_t* new_keys, int64_t* origin);
void sb_transpose(const int64_t* starts, const int32_t* keys, int64_t heads, int64_t length, int64_t* column_starts,
                  int32_t* rows, int32_t* entries);
void sb_survey(const int64_t* starts, const int32_t* others, const int64_t* other_starts, int64_t heads, int64_t length,
               int32_t* low, int32_t* reach, int32_t* longs);
// Rows straight from offsets (j - i, sorted and distinct inside a head), with or without the border.
int64_t sb_offsets_count(const int64_t* offset_starts, const int64_t* offsets, int64_t heads, int64_t length,
                         int64_t border);
void sb_offsets(const int64_t* offset_starts, const int64_t* offsets, int64_t heads, int64_t length, int64_t border,
                int64_t* starts, int32_t* keys);
#pragma GCC visibility pop
}
