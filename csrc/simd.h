// Vectors of one width per build, on the compiler's own vector types: one source for AVX-512, AVX2 and plain SSE2.
// Everything lives in SB_NAMESPACE, one per build, so that the linker never mixes code of two instruction sets.
#pragma once
#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__AVX512F__)
#define SB_NAMESPACE sb_avx512
#define SB_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define SB_NAMESPACE sb_avx2
#define SB_VECTOR_BYTES 32
#else
#define SB_NAMESPACE sb_portable
#define SB_VECTOR_BYTES 16
#endif

#if SB_VECTOR_BYTES >= 32
#include <immintrin.h>
#endif

#define SB_INLINE inline __attribute__((always_inline))
#define SB_APART __attribute__((noinline))  // large enough to be worth a call: keeps the build short

namespace SB_NAMESPACE {

template <class T>
struct Simd {
  static constexpr int width = SB_VECTOR_BYTES / sizeof(T);
  typedef T Vector __attribute__((vector_size(SB_VECTOR_BYTES)));
  typedef T Loose __attribute__((vector_size(SB_VECTOR_BYTES), aligned(sizeof(T)), may_alias));
};
template <class T>
using Vec = typename Simd<T>::Vector;
template <class T, int N>
struct Few {  // N numbers, whatever the width of a vector
  typedef T Vector __attribute__((vector_size(N * sizeof(T))));
};
template <class T>
using Four = typename Few<T, 4>::Vector;
template <class T>
using Eight = typename Few<T, 8>::Vector;

template <class T>
SB_INLINE Vec<T> load(const T* from) {
  return *reinterpret_cast<const typename Simd<T>::Loose*>(from);
}
template <class T>
SB_INLINE void store(T* to, Vec<T> value) {
  *reinterpret_cast<typename Simd<T>::Loose*>(to) = value;
}
// Past the caches: for results that would only push out what is still needed. `to` is aligned to a vector.
template <class T>
SB_INLINE void store_past(T* to, Vec<T> value) {
#if SB_VECTOR_BYTES == 64
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), (__m512i)value);
#elif SB_VECTOR_BYTES == 32
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), (__m256i)value);
#else
  store(to, value);
#endif
}
SB_INLINE void settle_stores() {
#if SB_VECTOR_BYTES >= 32
  _mm_sfence();
#endif
}
template <class T>
SB_INLINE Vec<T> all(T value) {
  return value - Vec<T>{};  // which the compiler knows to be `value` itself; a sum with 0 it would have to compute
}
template <class V>
SB_INLINE V larger(V a, V b) {
  return a > b ? a : b;
}
template <class T>
SB_INLINE T smaller_of(T a, T b) {
  return a < b ? a : b;
}
template <class T>
SB_INLINE T larger_of(T a, T b) {
  return a > b ? a : b;
}
// The first `count` lanes of a vector, and `rest` in the others.
template <class T, class Lane, int... I>
SB_INLINE Vec<T> lanes_below(Vec<T> v, Lane count, T rest, std::integer_sequence<int, I...>) {
  typedef Lane Lanes __attribute__((vector_size(SB_VECTOR_BYTES)));
  return Lanes{I...} < count ? v : all<T>(rest);
}
// Whole numbers of 32 bits, and which lanes come before `count`.
typedef int32_t Whole __attribute__((vector_size(SB_VECTOR_BYTES)));
typedef uint32_t Bits __attribute__((vector_size(SB_VECTOR_BYTES)));
typedef uint32_t LooseBits __attribute__((vector_size(SB_VECTOR_BYTES), aligned(4), may_alias));
template <int... I>
SB_INLINE Whole lanes_below(int count, std::integer_sequence<int, I...>) {
  return Whole{I...} < count;
}
SB_INLINE Whole lanes_below(int count) {
  return lanes_below(count, std::make_integer_sequence<int, SB_VECTOR_BYTES / 4>());
}
SB_INLINE Vec<float> first_lanes(Vec<float> v, int count, float rest) {
  return lanes_below<float, int32_t>(v, count, rest, std::make_integer_sequence<int, Simd<float>::width>());
}
SB_INLINE Vec<double> first_lanes(Vec<double> v, int count, double rest) {
  return lanes_below<double, int64_t>(v, count, rest, std::make_integer_sequence<int, Simd<double>::width>());
}
SB_INLINE void prefetch(const void* address) { __builtin_prefetch(address, 0, 2); }

// Sums across the lanes of several vectors at once -----------------------------------------------------------------

template <int... I>
SB_INLINE Vec<float> unpacked_sum(Vec<float> a, Vec<float> b, std::integer_sequence<int, I...>) {
  constexpr int w = sizeof...(I);
  return __builtin_shufflevector(a, b, (I / 4 * 4 + I % 4 / 2 + I % 2 * w)...) +
         __builtin_shufflevector(a, b, (I / 4 * 4 + I % 4 / 2 + I % 2 * w + 2)...);
}
template <int... I>
SB_INLINE Vec<float> paired_sum(Vec<float> a, Vec<float> b, std::integer_sequence<int, I...>) {
  constexpr int w = sizeof...(I);
  return __builtin_shufflevector(a, b, (I / 4 * 4 + I % 2 + I % 4 / 2 * w)...) +
         __builtin_shufflevector(a, b, (I / 4 * 4 + I % 2 + I % 4 / 2 * w + 2)...);
}
// Four vectors to one whose every 128 bits hold partial sums of a, b, c, d.
SB_INLINE Vec<float> four_sums(const Vec<float>* v) {
  std::make_integer_sequence<int, Simd<float>::width> lanes;
  return paired_sum(unpacked_sum(v[0], v[1], lanes), unpacked_sum(v[2], v[3], lanes), lanes);
}

// The sums of the lanes of v[0] .. v[7] (or v[3]).
SB_INLINE Eight<float> sum_lanes8(const Vec<float>* v) {
  const Vec<float> a = four_sums(v), b = four_sums(v + 4);
#if SB_VECTOR_BYTES == 64
  const Vec<float> s = __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23) +
                       __builtin_shufflevector(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
  return __builtin_shufflevector(s, s, 0, 1, 2, 3, 8, 9, 10, 11) +
         __builtin_shufflevector(s, s, 4, 5, 6, 7, 12, 13, 14, 15);
#elif SB_VECTOR_BYTES == 32
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11) +
         __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15);
#else
  return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
#endif
}
SB_INLINE Four<float> sum_lanes4(const Vec<float>* v) {
  const Vec<float> a = four_sums(v);
#if SB_VECTOR_BYTES == 64
  const auto s = __builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7) +
                 __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15);
  return __builtin_shufflevector(s, s, 0, 1, 2, 3) + __builtin_shufflevector(s, s, 4, 5, 6, 7);
#elif SB_VECTOR_BYTES == 32
  return __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);
#else
  return a;
#endif
}
template <class T>
SB_INLINE T sum_lanes(Vec<T> v) {
  T total = v[0];
  for (int i = 1; i < Simd<T>::width; ++i) total += v[i];
  return total;
}
// double serves gradient checks: plain is good enough.
SB_INLINE Eight<double> sum_lanes8(const Vec<double>* v) {
  Eight<double> sums;
  for (int g = 0; g < 8; ++g) sums[g] = sum_lanes<double>(v[g]);
  return sums;
}
SB_INLINE Four<double> sum_lanes4(const Vec<double>* v) {
  Four<double> sums;
  for (int g = 0; g < 4; ++g) sums[g] = sum_lanes<double>(v[g]);
  return sums;
}

// Sum and maximum of one vector by halving: few steps, no trip through memory.
template <int Step, int... I>
SB_INLINE Vec<float> swapped(Vec<float> v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (I ^ Step)...);
}
SB_INLINE float sum_one(Vec<float> v) {
  std::make_integer_sequence<int, Simd<float>::width> lanes;
  if constexpr (SB_VECTOR_BYTES == 64) v += swapped<8>(v, lanes);
  if constexpr (SB_VECTOR_BYTES >= 32) v += swapped<4>(v, lanes);
  v += swapped<2>(v, lanes);
  v += swapped<1>(v, lanes);
  return v[0];
}
SB_INLINE float max_one(Vec<float> v) {
  std::make_integer_sequence<int, Simd<float>::width> lanes;
  if constexpr (SB_VECTOR_BYTES == 64) v = larger(v, swapped<8>(v, lanes));
  if constexpr (SB_VECTOR_BYTES >= 32) v = larger(v, swapped<4>(v, lanes));
  v = larger(v, swapped<2>(v, lanes));
  v = larger(v, swapped<1>(v, lanes));
  return v[0];
}
SB_INLINE double sum_one(Vec<double> v) { return sum_lanes<double>(v); }
SB_INLINE double max_one(Vec<double> v) {
  double best = v[0];
  for (int i = 1; i < Simd<double>::width; ++i) best = v[i] > best ? v[i] : best;
  return best;
}

// exp for x <= 0 -------------------------------------------------------------------------------------------------

// Within 2 ulp (a test measures it); below the smallest normal number it is 0. Reduced to |r| <= ln2/2, then a polynomial of
// degree 6. NaN stays NaN. The rounding trick needs exact float semantics: no -ffast-math.
SB_INLINE Vec<float> exponential(Vec<float> x) {
  const float rounder = 12582912.0f;  // 1.5 * 2^23: adding it leaves the nearest integer in the low bits
  const Vec<float> shifted = x * 1.44269504088896341f + rounder;
  const Vec<float> whole = shifted - rounder;
  Vec<float> r = x - whole * 0.693359375f;
  r = r - whole * -2.12194440e-4f;
  Vec<float> p = all<float>(1.9875691500e-4f);
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const Bits power = ((Bits)shifted + 127u) << 23;
  return x < -87.3f ? Vec<float>{} : p * (Vec<float>)power;
}
SB_INLINE Vec<double> exponential(Vec<double> x) {
  Vec<double> y = x;
  for (int i = 0; i < Simd<double>::width; ++i) y[i] = __builtin_exp(x[i]);
  return y;
}

// bfloat16 and float16 ---------------------------------------------------------------------------------------------

struct BFloat16 {
  uint16_t bits;
};
SB_INLINE float widened(BFloat16 value) {
  const uint32_t bits = uint32_t(value.bits) << 16;
  float result;
  memcpy(&result, &bits, 4);
  return result;
}
SB_INLINE float widened(float value) { return value; }
SB_INLINE double widened(double value) { return value; }
SB_INLINE void narrow(BFloat16* to, float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;  // to nearest, ties to even
  to->bits = uint16_t(value != value ? 0x7fc0u : rounded);
}

struct Float16 {
  uint16_t bits;
};
SB_INLINE float widened(Float16 value) {
  // The exponent is moved over and its bias made up for by a product, which is exact and serves subnormals too.
  const uint32_t magnitude = value.bits & 0x7fffu;
  uint32_t bits = magnitude << 13;
  float result;
  memcpy(&result, &bits, 4);
  result *= 0x1p112f;
  memcpy(&bits, &result, 4);
  if (magnitude >= 0x7c00u) bits |= 0x7f800000u;  // infinity and NaN have an exponent of their own
  bits |= uint32_t(value.bits & 0x8000u) << 16;
  memcpy(&result, &bits, 4);
  return result;
}
SB_INLINE void narrow(Float16* to, float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    to->bits = uint16_t(sign | 0x7e00u);
  } else if (magnitude >= 0x477ff000u) {  // from 65,520 on the nearest is infinity
    to->bits = uint16_t(sign | 0x7c00u);
  } else if (magnitude >= 0x38800000u) {  // normal: rounded to nearest, ties to even
    to->bits = uint16_t(sign | ((magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13));
  } else {  // subnormal: adding 1/2 leaves the rounded count of 2^-24 in the low bits
    float small;
    memcpy(&small, &magnitude, 4);
    small += 0.5f;
    memcpy(&bits, &small, 4);
    to->bits = uint16_t(sign | (bits - 0x3f000000u));
  }
}
SB_INLINE void narrow(float* to, float value) { *to = value; }
SB_INLINE void narrow(double* to, double value) { *to = value; }

}  // namespace SB_NAMESPACE
