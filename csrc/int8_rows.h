// What happens to a row of numbers between two products: activation, residual, normalisation, quantisation.
#pragma once
#include "int8_linear.h"
#include "rows.h"

#include <type_traits>

namespace SB_NAMESPACE {

constexpr int w32 = Simd<float>::width;
typedef uint8_t Bytes __attribute__((vector_size(SB_VECTOR_BYTES / 4), aligned(1), may_alias));

// The larger and the smaller of two vectors; where one is NaN, the second. The compiler knows no such instruction by itself.
SB_INLINE Vec<float> at_least(Vec<float> limit, Vec<float> x) {
#if SB_VECTOR_BYTES == 64
  return _mm512_max_ps(limit, x);
#elif SB_VECTOR_BYTES == 32
  return _mm256_max_ps(limit, x);
#else
  return limit > x ? limit : x;
#endif
}
SB_INLINE Vec<float> at_most(Vec<float> limit, Vec<float> x) {
#if SB_VECTOR_BYTES == 64
  return _mm512_min_ps(limit, x);
#elif SB_VECTOR_BYTES == 32
  return _mm256_min_ps(limit, x);
#else
  return limit < x ? limit : x;
#endif
}

// x times the normal distribution's share below x, within 2e-4, which is little beside the step of a row's codes: an odd
// polynomial inside [-4, 4]. NaN stays NaN.
SB_INLINE Vec<float> gelu(Vec<float> x) {
  const float end = 4.0f;
  const Vec<float> low = at_least(all<float>(-end), x), t = at_most(all<float>(end), low), square = t * t;
  Vec<float> p = all<float>(2.27819523e-08f);
  p = p * square - 1.59862861e-06f;
  p = p * square + 4.7956044e-05f;
  p = p * square - 0.000814020517f;
  p = p * square + 0.00877241232f;
  p = p * square - 0.0645731613f;
  p = p * square + 0.397883385f;
  return low * (t * p + 0.5f);
}
SB_INLINE Vec<float> relu(Vec<float> x) { return at_least(Vec<float>{}, x); }

typedef uint16_t Halves __attribute__((vector_size(SB_VECTOR_BYTES / 2), aligned(2), may_alias));

// To bfloat16, as narrow() does it, a vector at a time.
SB_INLINE void store_narrow(BFloat16* to, Vec<float> x) {
  const Bits bits = (Bits)x, rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  const Bits known = x == x ? rounded : Bits{} + 0x7fc00000u;
  *reinterpret_cast<Halves*>(to) = __builtin_convertvector(known >> 16, Halves);
}

// Rows are worked on in whole vectors, and what is left over in one that is only partly stored: `work` is told where it
// stands and how many numbers there are.
template <class Work>
SB_INLINE void over(int64_t count, Work work) {
  int64_t k = 0;
  for (; k + w32 <= count; k += w32) work(k, std::integral_constant<int, w32>());
  if (k < count) work(k, int(count - k));
}
template <class Count>
SB_INLINE Vec<float> load_some(const float* from, Count count, float rest) {
  if constexpr (!std::is_same_v<Count, int>) return load(from);
  Vec<float> v = all<float>(rest);
  for (int i = 0; i < count; ++i) v[i] = from[i];
  return v;
}
template <class Count>
SB_INLINE void store_some(float* to, Count count, Vec<float> v) {
  if constexpr (!std::is_same_v<Count, int>) return store(to, v);
  for (int i = 0; i < count; ++i) to[i] = v[i];
}

// Sums along a row, in four chains, so that one addition does not wait for the one before it. term(k, some) is a vector.
template <class Term>
SB_INLINE float sum_over(int64_t count, Term term) {
  std::integral_constant<int, w32> whole;
  Vec<float> a = {}, b = {}, c = {}, d = {};
  int64_t k = 0;
  for (; k + 4 * w32 <= count; k += 4 * w32) {
    a += term(k, whole);
    b += term(k + w32, whole);
    c += term(k + 2 * w32, whole);
    d += term(k + 3 * w32, whole);
  }
  over(count - k, [&](int64_t rest, auto some) { a += term(k + rest, some); });
  return sum_one(a + b + (c + d));
}
// Adds another row to a row, and returns what that adds up to.
SB_APART float add_row(float* row, const float* other, int64_t count) {
  return sum_over(count, [&](int64_t k, auto some) {
    const Vec<float> sum = load_some(row + k, some, 0) + load_some(other + k, some, 0);
    store_some(row + k, some, sum);
    return sum;
  });
}
SB_APART float sum_of(const float* row, int64_t count) {
  return sum_over(count, [&](int64_t k, auto some) { return load_some(row + k, some, 0); });
}
// What a row less its mean is to be multiplied by for a variance of 1.
SB_APART float norm_factor(const float* row, int64_t count, float mean, float epsilon) {
  const float squares = sum_over(count, [&](int64_t k, auto some) {
    const Vec<float> d = load_some(row + k, some, mean) - mean;
    return d * d;
  });
  return 1.0f / __builtin_sqrtf(squares / float(count) + epsilon);
}

// How a row was quantised.
struct Marks {
  float scale, zero;
};

// The smallest and the largest number of a row, 0 among them.
struct Span {
  float low, high;
  bool finite;
};
// Four of each, so that one comparison does not wait for the one before it.
struct Spans {
  Vec<float> low[4] = {}, high[4] = {}, bad[4] = {};

  SB_INLINE void take(int chain, Vec<float> x) {
    low[chain] = at_most(x, low[chain]);
    high[chain] = at_least(x, high[chain]);
    bad[chain] += x * 0.0f;  // NaN where x is infinite or NaN
  }
  SB_INLINE Span together() const {
    const Vec<float> lowest = at_most(at_most(low[0], low[1]), at_most(low[2], low[3]));
    const Vec<float> highest = at_least(at_least(high[0], high[1]), at_least(high[2], high[3]));
    return {-max_one(-lowest), max_one(highest), sum_one(bad[0] + bad[1] + (bad[2] + bad[3])) == 0.0f};
  }
};
SB_APART Span span_of(const float* row, int64_t count) {
  Spans spans;
  int64_t k = 0;
  for (; k + 4 * w32 <= count; k += 4 * w32) {
    spans.take(0, load(row + k));
    spans.take(1, load(row + k + w32));
    spans.take(2, load(row + k + 2 * w32));
    spans.take(3, load(row + k + 3 * w32));
  }
  over(count - k, [&](int64_t rest, auto some) { spans.take(0, load_some(row + k + rest, some, 0)); });
  return spans.together();
}

// (row - mean) * factor * weight + bias, and its span.
struct NormWeights {
  const float *weight, *bias;
};
SB_APART Span normalise_row(const float* row, int64_t count, float mean, float factor, NormWeights norm, float* to) {
  Spans spans;
  auto take = [&](int chain, int64_t k, auto some) {
    const Vec<float> d = (load_some(row + k, some, mean) - mean) * factor;
    const Vec<float> x = d * load_some(norm.weight + k, some, 0) + load_some(norm.bias + k, some, 0);
    store_some(to + k, some, x);
    spans.take(chain, x);
  };
  std::integral_constant<int, w32> whole;
  int64_t k = 0;
  for (; k + 4 * w32 <= count; k += 4 * w32) {
    take(0, k, whole);
    take(1, k + w32, whole);
    take(2, k + 2 * w32, whole);
    take(3, k + 3 * w32, whole);
  }
  over(count - k, [&](int64_t rest, auto some) { take(0, k + rest, some); });
  return spans.together();
}

#if SB_VECTOR_BYTES == 64
// Four vectors of whole numbers to bytes, what lies outside them to the nearest byte. Halving works inside quarters of a
// vector: their parts are put in order at the end.
SB_INLINE __m512i bytes_of(const Whole* four) {
  const __m512i low = _mm512_packs_epi32((__m512i)four[0], (__m512i)four[1]);
  const __m512i high = _mm512_packs_epi32((__m512i)four[2], (__m512i)four[3]);
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(order, _mm512_packus_epi16(low, high));
}
#endif

// Codes of a row: 254 steps from its smallest to its largest number, 0 being one of them.
SB_APART Marks quantise_row(const float* row, int64_t count, const Span& span, uint8_t* codes) {
  const float scale = span.high * (1.0f / 254) - span.low * (1.0f / 254);
  if (!span.finite || scale < 1e-30f) {  // nothing that codes could be made of
    for (int64_t k = 0; k < count; ++k) codes[k] = 0;
    return {span.finite ? 0.0f : __builtin_nanf(""), 0.0f};
  }
  // Added to a small number, `rounder` leaves the nearest whole number in the lowest bits.
  const float rounder = 12582912.0f, factor = 1.0f / scale;
  const float zero = (rounder - span.low * factor) - rounder, first = rounder + zero;
  int64_t done = 0;
#if SB_VECTOR_BYTES == 64
  for (; done + 4 * w32 <= count; done += 4 * w32) {
    Whole four[4];
    for (int v = 0; v < 4; ++v) four[v] = (Whole)(load(row + done + v * w32) * factor + first) - 0x4b400000;
    _mm512_storeu_si512(codes + done, bytes_of(four));
  }
#endif
  row += done, codes += done;
  over(count - done, [&](int64_t k, auto some) {
    Vec<float> near = load_some(row + k, some, 0) * factor + first;
    near = at_most(all<float>(rounder + 255.0f), at_least(all<float>(rounder), near));
    const Bytes narrow = __builtin_convertvector((Bits)near & 255u, Bytes);
    if constexpr (!std::is_same_v<decltype(some), int>) {
      *reinterpret_cast<Bytes*>(codes + k) = narrow;
    } else {
      for (int i = 0; i < some; ++i) codes[k + i] = narrow[i];
    }
  });
  return {scale, zero};
}

}  // namespace SB_NAMESPACE
