// Compiled once per instruction set; SB_RUN names the one function it offers.
#include "kernel.h"

#include "backward.h"
#include "forward.h"

namespace SB_NAMESPACE {

template <class In, class T, class NV>
__attribute__((noinline)) void run_pass(const Problem& p, Pass pass, const Piece& piece, char* memory, T* pairs, NV nv) {
  switch (pass) {
    case FORWARD:
      Forward<In, T, NV>(p, piece, memory, nv).run();
      break;
    case BACKWARD_ROWS:
      BackwardRows<In, T, NV>(p, piece, memory, pairs, nv).run();
      break;
    case BACKWARD_COLUMNS:
      BackwardColumns<In, T, NV>(p, piece, memory, pairs, nv).run();
      break;
  }
}

// 64 is the head size of BERT and 32 that of small ones: their loops are unrolled.
template <class In, class T>
void run_typed(const Problem& p, Pass pass, const Piece& piece, char* memory, void* pairs) {
  constexpr int w = Simd<T>::width, usual = 64 / w, small = 32 / w;
  const int nv = int((p.size + w - 1) / w);
  T* typed = static_cast<T*>(pairs);
  if (sizeof(T) == 4 && nv == usual) {
    run_pass<In, T>(p, pass, piece, memory, typed, Width<usual>{nv});
  } else if (sizeof(T) == 4 && nv == small) {
    run_pass<In, T>(p, pass, piece, memory, typed, Width<small>{nv});
  } else {
    run_pass<In, T>(p, pass, piece, memory, typed, Width<0>{nv});
  }
}

}  // namespace SB_NAMESPACE

void SB_RUN(const Problem& p, Pass pass, const Piece& piece, char* memory, void* pairs) {
  using namespace SB_NAMESPACE;
  if (p.dtype == SB_FLOAT32) return run_typed<float, float>(p, pass, piece, memory, pairs);
  if (p.dtype == SB_FLOAT64) return run_typed<double, double>(p, pass, piece, memory, pairs);
  if (p.dtype == SB_FLOAT16) return run_typed<Float16, float>(p, pass, piece, memory, pairs);
  return run_typed<BFloat16, float>(p, pass, piece, memory, pairs);
}
