// What each build of kernel.cpp (one per instruction set) offers to interface.cpp.
#pragma once
#include "sparse_attention.h"

enum Pass { FORWARD, BACKWARD_ROWS, BACKWARD_COLUMNS };

// Tiles [first, last) of one head of one example; `longs` says whether its long lines are part of the piece.
struct Piece {
  int64_t batch, head, first, last;
  bool longs;
  int64_t next_batch = -1, next_head = -1;  // what this thread will probably work on next, if that is known
};

// `memory`: scratch of this thread. `pairs`: of this head of this example (backward).
using RunPiece = void (*)(const sb_problem&, Pass, const Piece& piece, char* memory, void* pairs);

void run_portable(const sb_problem&, Pass, const Piece&, char*, void*);
void run_avx2(const sb_problem&, Pass, const Piece&, char*, void*);
void run_avx512(const sb_problem&, Pass, const Piece&, char*, void*);
