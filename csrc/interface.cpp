// The C interface: cuts the work into pieces, hands them to threads, picks the instruction set.
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "call.h"
#include "threads.h"

namespace {

thread_local Scratch pair_scratch;

size_t element_size(const Problem& p) { return p.dtype == SB_FLOAT64 ? 8 : 4; }

int64_t tile_count(const Problem& p) { return (p.length + SB_TILE - 1) / SB_TILE; }

// Room for the packed rows, the long lines, and one tile of the longest lines there can be.
size_t scratch_bytes(const Problem& p) {
  const size_t width = 64 / element_size(p);
  const size_t padded = (p.size + width - 1) / width * width, length = p.length + 128;
  const size_t packed = 2 * length * padded, lines = SB_MAX_LONG * (length + 2 * padded) + 40 * padded;
  const size_t tile = (SB_TILE + 4) * (length + 16), rooms = (SB_TILE + SB_MAX_LONG) * length;
  return (packed + lines + tile) * element_size(p) + rooms * sizeof(int32_t) + 65536;
}

int64_t largest_head(const Problem& p) {
  int64_t most = 0;
  for (int64_t h = 0; h < p.pattern_heads; ++h) {
    const int64_t* starts = p.rows.starts + h * (p.length + 1);
    most = std::max(most, starts[p.length] - starts[0]);
  }
  return most;
}

// Whole heads where there are enough of them to share out; else also parts of heads, the long lines a part of its own.
bool whole_heads(const Problem& p) { return p.threads == 1 || p.batch * p.heads >= 4 * p.threads; }

std::vector<Piece> pieces(const Problem& p) {
  const int64_t tiles = tile_count(p), parts = whole_heads(p) ? 1 : std::min<int64_t>(tiles, 4 * p.threads);
  std::vector<Piece> list;
  for (int64_t b = 0; b < p.batch; ++b) {
    for (int64_t h = 0; h < p.heads; ++h) {
      if (parts <= 1) {
        list.push_back({b, h, 0, tiles, true});
        continue;
      }
      list.push_back({b, h, 0, 0, true});
      for (int64_t part = 0; part < parts; ++part)
        list.push_back({b, h, tiles * part / parts, tiles * (part + 1) / parts, false});
    }
  }
  // Threads take whole heads in turn: each will be as many heads further on as there are threads.
  const size_t step = size_t(p.threads);
  for (size_t k = 0; parts <= 1 && k + step < list.size(); ++k) {
    list[k].next_batch = list[k + step].batch;
    list[k].next_head = list[k + step].head;
  }
  return list;
}

// A result of this size is fresh memory from the system, and touching it page by page costs as much as filling it:
// large pages are asked for. (Smaller results come out of the allocator's heap, which is left as it is.)
void prepare_result(const Problem& p, const sb_tensor& t) {
  constexpr uintptr_t page = uintptr_t(1) << 21, large = uintptr_t(1) << 25;
  const size_t width = p.dtype == SB_FLOAT64 ? 8 : p.dtype == SB_FLOAT32 ? 4 : 2;
  const size_t bytes = size_t(p.tokens * p.heads * p.size) * width;
  const uintptr_t from = (uintptr_t(t.data) + page - 1) / page * page, to = (uintptr_t(t.data) + bytes) / page * page;
  if (bytes > large && to > from) madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
}

RunPiece runner(const Problem& p) {
#if defined(__x86_64__)
  if (p.isa == SB_AVX512) return run_avx512;
  if (p.isa == SB_AVX2) return run_avx2;
#endif
  (void)p;
  return run_portable;
}

// Where the pairs of (batch element, head) lie: all of them, or a place in this thread's scratch.
struct Pairs {
  char* all = nullptr;
  int64_t each = 0;  // bytes a head
  char* of(const Problem& p, const Piece& piece) const {
    return all ? all + (piece.batch * p.heads + piece.head) * each : pair_scratch.at_least(each);
  }
};

// The bias asks for every entry's gradient, also of those that an example does not use. This is done before any piece
// runs: the pieces of one head may belong to several threads.
void clear_unused(const Problem& p, const Pairs& pairs) {
  if (!p.grad_bias || !p.lengths) return;
  for (int64_t b = 0; b < p.batch; ++b) {
    if (p.lengths[b] < p.length) memset(pairs.all + b * p.heads * pairs.each, 0, size_t(p.heads * pairs.each));
  }
}

int run_pieces(const Problem& p, const std::vector<Pass>& passes, const Pairs& pairs) {
  const std::vector<Piece> list = pieces(p);
  const RunPiece run = runner(p);
  return share_out(int64_t(list.size()), p.threads, scratch_bytes(p), [&](int64_t mine, char* memory) -> int {
    const Piece& piece = list[size_t(mine)];
    char* pair = pairs.each ? pairs.of(p, piece) : nullptr;
    if (pairs.each && !pair) return SB_NO_MEMORY;
    for (Pass pass : passes) run(p, pass, piece, memory, pair);
    return SB_OK;
  });
}

// Sums the score gradients over the batch (and over the heads that share a bias), always in the same order.
template <class T>
void reduce_bias(const Problem& p, const Pairs& pairs) {
  const bool shared_pattern = p.pattern_heads == 1, shared_bias = shared_pattern && p.bias_stride == 0;
  T* out = static_cast<T*>(p.grad_bias);
  const int64_t heads = p.heads, kept_heads = shared_bias ? 1 : heads;
#pragma omp parallel for num_threads(int(p.threads)) schedule(static)
  for (int64_t h = 0; h < kept_heads; ++h) {
    const int64_t* starts = p.rows.starts + (shared_pattern ? 0 : h * (p.length + 1));
    const int64_t first = starts[0], count = starts[p.length] - first;
    T* sums = out + (shared_pattern ? h * p.bias_stride : first);
    for (int64_t e = 0; e < count; ++e) sums[e] = 0;
    for (int64_t b = 0; b < p.batch; ++b) {
      for (int64_t g = h; g < (shared_bias ? heads : h + 1); ++g) {
        const T* slopes = reinterpret_cast<const T*>(pairs.all + (b * heads + g) * pairs.each) + 1;
        for (int64_t e = 0; e < count; ++e) sums[e] += slopes[2 * e];
      }
    }
  }
}

bool nothing_to_do(const Problem& p) { return p.tokens * p.heads == 0; }

int forward(const Problem& p) {
  if (nothing_to_do(p)) return SB_OK;
  prepare_result(p, p.out);
  return run_pieces(p, {FORWARD}, {});
}

int backward(const Problem& p) {
  if (nothing_to_do(p)) {
    if (p.grad_bias) memset(p.grad_bias, 0, size_t((p.bias_stride ? p.heads : 1) * p.kept) * element_size(p));
    return SB_OK;
  }
  for (const sb_tensor* result : {&p.grad_query, &p.grad_key, &p.grad_value}) prepare_result(p, *result);
  Pairs pairs;
  pairs.each = std::max<int64_t>(64, (2 * largest_head(p) * int64_t(element_size(p)) + 63) / 64 * 64);
  // Whole heads go through both passes at once, their pairs still in cache.
  const bool together = whole_heads(p) && !p.grad_bias;
  std::unique_ptr<char, decltype(&std::free)> all(nullptr, &std::free);
  if (!together) {
    all.reset(static_cast<char*>(std::aligned_alloc(64, size_t(p.batch * p.heads * pairs.each))));
    if (!all) return SB_NO_MEMORY;
    pairs.all = all.get();
    clear_unused(p, pairs);
  }
  int failed;
  if (whole_heads(p)) {
    failed = run_pieces(p, {BACKWARD_ROWS, BACKWARD_COLUMNS}, pairs);
  } else {
    failed = run_pieces(p, {BACKWARD_ROWS}, pairs);
    if (!failed) failed = run_pieces(p, {BACKWARD_COLUMNS}, pairs);
  }
  if (!failed && p.grad_bias) {
    if (p.dtype == SB_FLOAT64) {
      reduce_bias<double>(p, pairs);
    } else {
      reduce_bias<float>(p, pairs);
    }
  }
  return failed;
}

// Checks a call and runs it; nothing is thrown at whoever called.
template <class Run>
int answer(const sb_call* call, Direction direction, Run run) {
  try {
    Checked checked;
    if (const int wrong = check_call(call, direction, checked)) return wrong;
    return run(checked.problem);
  } catch (const std::bad_alloc&) {
    return SB_NO_MEMORY;
  }
}

}  // namespace

extern "C" {

int sb_best_isa() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl"))
    return SB_AVX512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) return SB_AVX2;
#endif
  return SB_PORTABLE;
}

int sb_forward(const sb_call* call) { return answer(call, FORWARD_CALL, forward); }

int sb_backward(const sb_call* call) { return answer(call, BACKWARD_CALL, backward); }
}
