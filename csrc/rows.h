// What the kernel does to rows of numbers: bring them in, take dot products, add them up with weights.
#pragma once
#include "simd.h"

namespace SB_NAMESPACE {

// Rows of `nv` vectors each, `stride` elements apart.
template <class T>
struct Rows {
  const T* data;
  int64_t stride;
  SB_INLINE const T* operator[](int64_t i) const { return data + i * stride; }
};

template <class In, class T>
SB_INLINE void bring_row(const In* from, T* to, int64_t size, int64_t padded, T factor) {
  for (int64_t c = 0; c < size; ++c) to[c] = widened(from[c]) * factor;
  for (int64_t c = size; c < padded; ++c) to[c] = 0;
}
template <class In, class T>
SB_INLINE void send_row(const T* from, In* to, int64_t size, T factor) {
  for (int64_t c = 0; c < size; ++c) narrow(to + c, from[c] * factor);
}
template <class In>
SB_INLINE void clear_row(In* to, int64_t size) {
  memset(to, 0, size * sizeof(In));
}
SB_INLINE void prefetch_row(const void* row, int64_t bytes) {
  for (int64_t at = 0; at < bytes; at += 64) prefetch(static_cast<const char*>(row) + at);
}

// G dot products at once: G independent chains of multiply-adds, one load of q for each G of them.
template <class T, int G>
SB_INLINE void dot_group(const T* q, const T* const (&keys)[G], int nv, T* out) {
  constexpr int w = Simd<T>::width;
  Vec<T> sums[G] = {};
  for (int c = 0; c < nv; ++c) {
    const Vec<T> qc = load(q + c * w);
#pragma GCC unroll 8
    for (int g = 0; g < G; ++g) sums[g] += qc * load(keys[g] + c * w);
  }
  if constexpr (G == 8) {
    sum_lanes8(sums, out);
  } else {
    sum_lanes4(sums, out);
  }
}

// out[k] = q . rows[others[k]]; out has room up to the next multiple of 8.
template <class T, class NV>
SB_APART void dots(const T* q, Rows<T> rows, const int32_t* others, int count, NV nv, T* out) {
  int k = 0;
  for (; k + 4 < count; k += 8) {
    const T* keys[8];
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) keys[g] = rows[others[smaller_of(k + g, count - 1)]];
    dot_group<T, 8>(q, keys, nv, out + k);
  }
  if (k < count) {
    const T* keys[4];
#pragma GCC unroll 4
    for (int g = 0; g < 4; ++g) keys[g] = rows[others[smaller_of(k + g, count - 1)]];
    dot_group<T, 4>(q, keys, nv, out + k);
  }
}

// sum[0 .. C vectors) += the rows' vectors [first, first + C), weighted.
template <class T, int C>
SB_INLINE void add_columns(Rows<T> rows, const int32_t* others, const T* weights, int count, int first, T* sum) {
  constexpr int w = Simd<T>::width;
  Vec<T> even[C], odd[C] = {};
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) even[c] = load(sum + (first + c) * w);
  int k = 0;
  for (; k + 1 < count; k += 2) {
    const T *a = rows[others[k]] + first * w, *b = rows[others[k + 1]] + first * w;
    const Vec<T> wa = all<T>(weights[k]), wb = all<T>(weights[k + 1]);
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      even[c] += wa * load(a + c * w);
      odd[c] += wb * load(b + c * w);
    }
  }
  if (k < count) {
    const T* a = rows[others[k]] + first * w;
    const Vec<T> wa = all<T>(weights[k]);
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) even[c] += wa * load(a + c * w);
  }
#pragma GCC unroll 8
  for (int c = 0; c < C; ++c) store(sum + (first + c) * w, even[c] + odd[c]);
}

// sum += the weighted sum of rows[others[k]].
template <class T, class NV>
SB_APART void add_weighted(Rows<T> rows, const int32_t* others, const T* weights, int count, NV nv, T* sum) {
  constexpr int step = SB_VECTOR_BYTES == 64 ? 8 : 4;  // two sets of sums must fit the registers
  int c = 0;
  for (; c + 4 <= nv; c += 4) {
    if (step == 8 && c + 8 <= nv) {
      add_columns<T, step>(rows, others, weights, count, c, sum);
      c += 4;
    } else {
      add_columns<T, 4>(rows, others, weights, count, c, sum);
    }
  }
  if (c + 2 <= nv) {
    add_columns<T, 2>(rows, others, weights, count, c, sum);
    c += 2;
  }
  if (c < nv) add_columns<T, 1>(rows, others, weights, count, c, sum);
}

}  // namespace SB_NAMESPACE
