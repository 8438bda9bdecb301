// What the kernel does to rows of numbers: bring them in, take dot products, add them up with weights.
#pragma once
#include "simd.h"

namespace SB_NAMESPACE {

// An integer that is known to the compiler when Known > 0: the loop over a row's vectors then unrolls.
template <int Known>
struct Width {
  int value;
  SB_INLINE operator int() const { return Known > 0 ? Known : value; }
};

// Rows of numbers, one after another: a row is `nv` vectors long, which the compiler knows for the usual head size.
template <class T, class NV>
struct Rows {
  const T* data;
  NV nv;
  SB_INLINE const T* operator[](int64_t i) const { return data + i * (int64_t(nv) * Simd<T>::width); }
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

// a . b, for runs that must not be read past their end.
template <class T>
SB_INLINE T product(const T* a, const T* b, int count) {
  constexpr int w = Simd<T>::width;
  Vec<T> sums = {};
  int k = 0;
  for (; k + w <= count; k += w) sums += load(a + k) * load(b + k);
  T total = k ? sum_one(sums) : T(0);
  for (; k < count; ++k) total += a[k] * b[k];
  return total;
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

// G dot products of which only `count` are wanted: the last one is taken again for the others.
template <int G, class T, class NV>
SB_INLINE void dot_rest(const T* q, Rows<T, NV> rows, const int32_t* others, int count, T* out) {
  const T* keys[G];
#pragma GCC unroll 8
  for (int g = 0; g < G; ++g) keys[g] = rows[others[smaller_of(g, count - 1)]];
  dot_group<T, G>(q, keys, rows.nv, out);
}

// out[k] = q . rows[others[k]]; out has room up to the next multiple of 8.
template <class T, class NV>
SB_APART void dots(const T* q, Rows<T, NV> rows, const int32_t* others, int count, T* out) {
  int k = 0;
  for (; k + 8 <= count; k += 8) {
    const T* keys[8];
#pragma GCC unroll 8
    for (int g = 0; g < 8; ++g) keys[g] = rows[others[k + g]];
    dot_group<T, 8>(q, keys, rows.nv, out + k);
  }
  if (k + 4 < count) {
    dot_rest<8>(q, rows, others + k, count - k, out + k);
  } else if (k < count) {
    dot_rest<4>(q, rows, others + k, count - k, out + k);
  }
}

// out[first .. first + C vectors) = factor * (before + the weighted sum of the rows' same vectors).
template <int C, bool Fresh, class T, class NV>
SB_INLINE void add_columns(Rows<T, NV> rows, const int32_t* others, const T* weights, int count, int first, T factor,
                           T* out, bool past) {
  constexpr int w = Simd<T>::width;
  Vec<T> even[C] = {}, odd[C] = {};
  if constexpr (!Fresh) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) even[c] = load(out + (first + c) * w);
  }
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
  if (Fresh && past) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) store_past(out + (first + c) * w, (even[c] + odd[c]) * factor);
  } else {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) store(out + (first + c) * w, (even[c] + odd[c]) * factor);
  }
}

// out = factor * (the weighted sum of rows[others[k]]), added to what out held unless Fresh. A fresh sum never reads
// `out`: a read would wait for the stores of earlier results to reach memory.
template <bool Fresh, class T, class NV>
SB_APART void weighted_sum(Rows<T, NV> rows, const int32_t* others, const T* weights, int count, T factor, T* out,
                           bool past = false) {
  const NV nv = rows.nv;
  constexpr int most = SB_VECTOR_BYTES == 64 ? 8 : 4;  // two sets of sums must fit the registers
  int c = 0;
  for (; c + most <= nv; c += most) add_columns<most, Fresh>(rows, others, weights, count, c, factor, out, past);
  if (most > 4 && c + 4 <= nv) {
    add_columns<4, Fresh>(rows, others, weights, count, c, factor, out, past);
    c += 4;
  }
  if (c + 2 <= nv) {
    add_columns<2, Fresh>(rows, others, weights, count, c, factor, out, past);
    c += 2;
  }
  if (c < nv) add_columns<1, Fresh>(rows, others, weights, count, c, factor, out, past);
}

}  // namespace SB_NAMESPACE
