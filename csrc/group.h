// Sixteen lines of one head at once, each of a few entries: scores, softmax and weighted sums side by side, so that no line
// waits for its own results. Lines need not be neighbours, nor equally long: what one has too few is a row of zeros.
#pragma once
#include "rows.h"
#include "sweep.h"

namespace SB_NAMESPACE {

SB_INLINE int64_t up(int64_t count, int64_t step) { return (count + step - 1) / step * step; }

template <class T, class NV>
struct Group {
  static constexpr int rows = 16, most = 32, few = 16;  // lines, and entries of a line
  static constexpr int w = Simd<T>::width, at_once = SB_VECTOR_BYTES == 64 ? 8 : 4;

  NV nv;
  T* queries;  // [rows, padded], scaled
  int count = 0, entries = 0;
  int64_t index[rows];  // the lines' own positions
  Line lines[rows];     // only where they are to be kept
  alignas(64) uint32_t places[rows][most];  // of keys and values, in bytes from the first of them
  alignas(64) T scores[most][rows];         // then weights
  alignas(64) T counts[rows], factors[rows];

  SB_INLINE Group(NV nv, T* queries) : nv(nv), queries(queries) {}

  SB_INLINE int64_t padded() const { return int64_t(nv) * w; }
  // Places are counted in 32 bits; the row of zeros follows the last one.
  SB_INLINE bool reaches(int64_t length) const { return (length + 1) * padded() * int64_t(sizeof(T)) <= UINT32_MAX; }
  SB_INLINE bool full() const { return count == rows; }
  SB_INLINE T* next_query() const { return queries + count * padded(); }

  // A line whose query is there already. `readable`: others go on for `most` places, whatever they name.
  SB_INLINE void add(int64_t i, const Line& line, bool readable, int64_t length, bool keep) {
    const uint32_t each = uint32_t(padded() * sizeof(T)), zeros = uint32_t(length) * each;
    uint32_t* to = places[count];
    const int filled = line.count <= few ? few : most;
    if (readable) {
      constexpr int lanes = SB_VECTOR_BYTES / 4;
      for (int k = 0; k < filled; k += lanes) {
        const Bits others = *reinterpret_cast<const LooseBits*>(line.others + k);
        *reinterpret_cast<LooseBits*>(to + k) = lanes_below(line.count - k) ? others * each : Bits{} + zeros;
      }
    } else {
      for (int k = 0; k < line.count; ++k) to[k] = uint32_t(line.others[k]) * each;
      for (int k = line.count; k < filled; ++k) to[k] = zeros;
    }
    index[count] = i, counts[count] = T(line.count);
    if (keep) lines[count] = line;
    entries = larger_of(entries, line.count);
    ++count;
  }
  // Lines that are not there are lines without entries.
  SB_INLINE void close(int64_t length) {
    if (count == rows && entries <= few) return;
    const uint32_t zeros = uint32_t(length * padded() * sizeof(T));
    for (int r = count; r < rows; ++r) counts[r] = 0;
    for (int r = 0; r < rows; ++r) {
      for (int k = r >= count ? 0 : counts[r] <= few ? few : most; k < entries; ++k) places[r][k] = zeros;
    }
  }
  SB_INLINE void clear() { count = entries = 0; }

  static SB_INLINE const T* at(const T* first, uint32_t place) {
    return reinterpret_cast<const T*>(reinterpret_cast<const char*>(first) + place);
  }

  SB_APART void score(const T* keys) {
    constexpr int held_vectors = SB_VECTOR_BYTES == 64 ? 2 : 1;  // of each query, in registers
    const int entries = this->entries;
    for (int first = 0; first < rows; first += 8) {
      const T* q = queries + first * padded();
      const uint32_t* place = places[first];
      T* to = scores[0] + first;
      Vec<T> held[8][held_vectors];
#pragma GCC unroll 8
      for (int r = 0; r < 8; ++r) {
        for (int c = 0; c < held_vectors && c < nv; ++c) held[r][c] = load(q + r * padded() + c * w);
      }
      for (int k = 0; k < entries; ++k, ++place, to += rows) {
        Vec<T> sums[8];
#pragma GCC unroll 8
        for (int r = 0; r < 8; ++r) {
          const T* key = at(keys, place[r * most]);
          sums[r] = held[r][0] * load(key);
          for (int c = 1; c < held_vectors && c < nv; ++c) sums[r] += held[r][c] * load(key + c * w);
          for (int c = held_vectors; c < nv; ++c) sums[r] += load(q + r * padded() + c * w) * load(key + c * w);
        }
        const Eight<T> eight = sum_lanes8(sums);
        memcpy(to, &eight, sizeof eight);
      }
    }
  }

  // A line without entries, or whose scores are all -inf, has nothing to attend to: its weights are 0.
  SB_APART void soften() {
    const T none = -__builtin_inf();
    const int entries = this->entries;
    for (int v = 0; v < rows; v += w) {
      const Vec<T> own = load(counts + v);
      Vec<T> best = all<T>(none), total = {};
      for (int k = 0; k < entries; ++k) {
        const Vec<T> score = own > T(k) ? load(scores[k] + v) : all<T>(none);
        store(scores[k] + v, score);
        best = larger(best, score);
      }
      best = best == none ? Vec<T>{} : best;
      for (int k = 0; k < entries; ++k) {
        const Vec<T> e = exponential(load(scores[k] + v) - best);
        store(scores[k] + v, e);
        total += e;
      }
      store(factors + v, total == T(0) ? Vec<T>{} : 1 / total);
    }
  }

  // out(r, c, sum): vector c of line r.
  template <int C, class Out>
  SB_INLINE void add_columns(const T* values, int c, const Out& out) {
    const int entries = this->entries;
    values += c * w;
    for (int first = 0; first < count; first += at_once) {
      const uint32_t* place = places[first];
      const T* weights = scores[0] + first;
      Vec<T> sums[at_once][C] = {};
      for (int k = 0; k < entries; ++k, ++place, weights += rows) {
#pragma GCC unroll 8
        for (int r = 0; r < at_once; ++r) {
          const Vec<T> weight = all<T>(weights[r]);
          const T* value = at(values, place[r * most]);
#pragma GCC unroll 2
          for (int d = 0; d < C; ++d) sums[r][d] += weight * load(value + d * w);
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < at_once; ++r) {
        if (first + r >= count) break;
#pragma GCC unroll 2
        for (int d = 0; d < C; ++d) out(first + r, c + d, sums[r][d] * factors[first + r]);
      }
    }
  }
  template <class Out>
  SB_INLINE void add_up(const T* values, const Out& out) {
    int c = 0;
    for (; c + 2 <= nv; c += 2) add_columns<2>(values, c, out);
    if (c < nv) add_columns<1>(values, c, out);
  }
};

}  // namespace SB_NAMESPACE
