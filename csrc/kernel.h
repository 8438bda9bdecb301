// What the kernel works on: a call that was checked, beside the index it names.
#pragma once
#include "sparse_attention.h"

// Lines are worked on in tiles of SB_TILE. A line of more than SB_LONG entries (a border row) is taken apart and worked
// on beside the tiles that use the same keys, so that keys travel from memory once. Where more than SB_MAX_LONG lines
// are that long the pattern is close to dense and nothing is gained: none is treated as long then.
enum { SB_TILE = 32, SB_LONG = 256, SB_MAX_LONG = 8 };

// One side of an index of `heads` heads. Line i of head h owns entries starts[h, i] .. starts[h, i + 1].
struct Side {
  const int64_t* starts;   // [heads, length + 1]
  const int32_t* others;   // [kept]
  const int32_t* entries;  // columns only: [kept]
  const int32_t* low;      // [heads, tiles], the tile's first other, the other side's long lines left out
  const int32_t* reach;    // [heads, tiles], one past the tile's last other, likewise
  const int32_t* longs;    // [heads, SB_MAX_LONG]
};

struct Problem {
  int64_t batch, heads, length, size;
  int64_t pattern_heads;  // 1 or heads
  int64_t kept;           // kept entries of the whole pattern
  Side rows, columns;
  const int64_t* lengths;     // [batch] or null
  const int64_t* first_rows;  // [batch], where each example begins in a packed row; null: examples lie apart
  int64_t tokens;             // rows of a tensor, padding too
  bool token;              // each example's last token plays the pattern's last position
  double scale, dropout;
  uint64_t seed;
  sb_tensor query, key, value, out;
  sb_tensor grad_out, grad_query, grad_key, grad_value;
  const void* bias;
  int64_t bias_stride;  // elements from one head's bias to the next: 0 when shared
  void* grad_bias;
  void* weights;
  int64_t dtype, threads, isa;
};

enum Pass { FORWARD, BACKWARD_ROWS, BACKWARD_COLUMNS };

// Tiles [first, last) of one head of one example; `longs` says whether its long lines are part of the piece.
struct Piece {
  int64_t batch, head, first, last;
  bool longs;
  int64_t next_batch = -1, next_head = -1;  // what this thread will probably work on next, if that is known
};

// Each build of kernel.cpp (one per instruction set) offers one of these.
// `memory`: scratch of this thread. `pairs`: of this head of this example (backward).
using RunPiece = void (*)(const Problem&, Pass, const Piece& piece, char* memory, void* pairs);

void run_portable(const Problem&, Pass, const Piece&, char*, void*);
void run_avx2(const Problem&, Pass, const Piece&, char*, void*);
void run_avx512(const Problem&, Pass, const Piece&, char*, void*);
