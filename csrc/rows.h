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
SB_INLINE void bring_row(const In* from, T* to, int64_t size, int64_t padded) {
  for (int64_t c = 0; c < size; ++c) to[c] = widened(from[c]);
  for (int64_t c = size; c < padded; ++c) to[c] = 0;
}
template <class In, class T>
SB_INLINE void bring_scaled_row(const In* from, T* to, int64_t size, int64_t padded, T scale) {
  for (int64_t c = 0; c < size; ++c) to[c] = widened(from[c]) * scale;
  for (int64_t c = size; c < padded; ++c) to[c] = 0;
}
template <class In, class T>
SB_INLINE void send_row(const T* from, In* to, int64_t size, T factor) {
  for (int64_t c = 0; c < size; ++c) narrow(to + c, from[c] * factor);
}
#if defined(__F16C__)
// The processor widens and narrows eight of these at a time.
SB_INLINE void bring_row(const Float16* from, float* to, int64_t size, int64_t padded) {
  int64_t c = 0;
  for (; c + 8 <= size; c += 8)
    _mm256_storeu_ps(to + c, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + c))));
  for (; c < size; ++c) to[c] = widened(from[c]);
  for (; c < padded; ++c) to[c] = 0;
}
SB_INLINE void send_row(const float* from, Float16* to, int64_t size, float factor) {
  int64_t c = 0;
  for (; c + 8 <= size; c += 8) {
    const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(from + c), _mm256_set1_ps(factor));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + c), _mm256_cvtps_ph(scaled, _MM_FROUND_TO_NEAREST_INT));
  }
  for (; c < size; ++c) narrow(to + c, from[c] * factor);
}
#endif
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

// G dot products at once: G independent chains of multiply-adds, one load of q for each G of them. From `count` on they
// are those of the last row again, unless what follows in `others` may be read instead.
template <int G, class T, class NV>
SB_INLINE auto dot_group(const T* q, Rows<T, NV> rows, const int32_t* others, int count, bool readable) {
  constexpr int w = Simd<T>::width;
  const T* keys[G];
  if (readable) {
#pragma GCC unroll 8
    for (int g = 0; g < G; ++g) keys[g] = rows[others[g]];
  } else {
    for (int g = 0; g < G; ++g) keys[g] = rows[others[smaller_of(g, count - 1)]];
  }
  Vec<T> sums[G] = {};
  const NV nv = rows.nv;
  for (int c = 0; c < nv; ++c) {
    const Vec<T> qc = load(q + c * w);
#pragma GCC unroll 8
    for (int g = 0; g < G; ++g) sums[g] += qc * load(keys[g] + c * w);
  }
  if constexpr (G == 8) {
    return sum_lanes8(sums);
  } else {
    return sum_lanes4(sums);
  }
}

// out[k] = q . rows[others[k]]; out has room up to the next multiple of 8 and holds no meaning from `count` on.
// `readable`: others go on for at least 7 valid places, whatever they name.
template <class T, class NV>
SB_APART void dots(const T* q, Rows<T, NV> rows, const int32_t* others, int count, bool readable, T* out) {
  int k = 0;
  for (; k + 4 < count; k += 8) {
    const auto eight = dot_group<8>(q, rows, others + k, count - k, readable || k + 8 <= count);
    memcpy(out + k, &eight, sizeof eight);
  }
  if (k < count) {
    const auto four = dot_group<4>(q, rows, others + k, count - k, readable || k + 4 == count);
    memcpy(out + k, &four, sizeof four);
  }
}

// out[first .. first + C vectors) = factor * (before + the weighted sum of the rows' same vectors). Few vectors are summed
// in two chains, for the multiply-adds of one would wait for each other.
template <int C, bool Fresh, class T, class NV>
SB_INLINE void add_columns(Rows<T, NV> rows, const int32_t* others, const T* weights, int count, int first, T factor,
                           T* out, bool past) {
  constexpr int w = Simd<T>::width;
  constexpr bool two_chains = C <= 4;
  Vec<T> even[C] = {}, odd[C] = {};
  if constexpr (!Fresh) {
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) even[c] = load(out + (first + c) * w);
  }
  int k = 0;
  for (; two_chains && k + 1 < count; k += 2) {
    const T *a = rows[others[k]] + first * w, *b = rows[others[k + 1]] + first * w;
    const Vec<T> wa = all<T>(weights[k]), wb = all<T>(weights[k + 1]);
#pragma GCC unroll 8
    for (int c = 0; c < C; ++c) {
      even[c] += wa * load(a + c * w);
      odd[c] += wb * load(b + c * w);
    }
  }
  for (; k < count; ++k) {
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
  constexpr int most = 8;
  int c = 0;
  for (; c + most <= nv; c += most) add_columns<most, Fresh>(rows, others, weights, count, c, factor, out, past);
  if (c + 4 <= nv) {
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
