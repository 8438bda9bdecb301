// Products of codes and weights in whole numbers, exact on every instruction set: tiles of a few rows and units.
//
// A code is unsigned, a weight signed, as the VNNI instruction has it. Without VNNI both are widened to 16 bits first: the
// shorter way, which adds pairs of products in 16 bits, saturates and would be wrong for large codes.
#pragma once
#include "int8_kernel.h"
#include "simd.h"

namespace SB_NAMESPACE {

#define SB_UNROLL _Pragma("GCC unroll 64")  // so that sums are registers, not an array
#define SB_VNNI_CODE __attribute__((target("avx512vnni")))

// A tile: a few rows of codes against neighbouring units.
struct Tile {
  const uint8_t* codes;  // the first row's
  const int16_t* wide;   // the same widened, where the instruction set needs them so
  int64_t row;           // from one row of codes to the next
  const int8_t* weights; // the first unit's
  int64_t steps;
  int32_t* sums;  // [rows, units * SB_UNIT]
};

#if SB_VECTOR_BYTES == 64
template <int Rows, int Units>
SB_VNNI_CODE SB_APART void vnni_tile(const Tile& t) {
  __m512i sums[Rows][Units];
  SB_UNROLL for (int r = 0; r < Rows; ++r) {
    SB_UNROLL for (int u = 0; u < Units; ++u) sums[r][u] = _mm512_setzero_si512();
  }
  const int64_t unit = t.steps * SB_UNIT * SB_STEP;
  constexpr int64_t ahead = 1024;  // bytes: what comes from a farther cache arrives in time
  for (int64_t k = 0; k < t.steps; ++k) {
    __m512i weights[Units];
    SB_UNROLL for (int u = 0; u < Units; ++u) {
      const int8_t* from = t.weights + u * unit + k * SB_UNIT * SB_STEP;
      weights[u] = _mm512_loadu_si512(from);
      __builtin_prefetch(from + ahead);
    }
    SB_UNROLL for (int r = 0; r < Rows; ++r) {
      int32_t four;
      memcpy(&four, t.codes + r * t.row + k * SB_STEP, SB_STEP);
      const __m512i codes = _mm512_set1_epi32(four);
      SB_UNROLL for (int u = 0; u < Units; ++u) sums[r][u] = _mm512_dpbusd_epi32(sums[r][u], codes, weights[u]);
    }
  }
  SB_UNROLL for (int r = 0; r < Rows; ++r) {
    SB_UNROLL for (int u = 0; u < Units; ++u) _mm512_storeu_si512(t.sums + (r * Units + u) * SB_UNIT, sums[r][u]);
  }
}
#endif

#if SB_VECTOR_BYTES >= 32
// Widened numbers: a vector holds four codes times a few outputs, and its sums come in pairs for each output.
#if SB_VECTOR_BYTES == 64
typedef __m512i Words;
SB_INLINE Words widened(const int8_t* from) { return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i*)from)); }
SB_INLINE Words repeated(int64_t four) { return _mm512_set1_epi64(four); }
SB_INLINE Words added(Words sums, Words a, Words b) { return _mm512_add_epi32(sums, _mm512_madd_epi16(a, b)); }
#else
typedef __m256i Words;
SB_INLINE Words widened(const int8_t* from) { return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i*)from)); }
SB_INLINE Words repeated(int64_t four) { return _mm256_set1_epi64x(four); }
SB_INLINE Words added(Words sums, Words a, Words b) { return _mm256_add_epi32(sums, _mm256_madd_epi16(a, b)); }
#endif

template <int Rows, int Units>
SB_APART void wide_tile(const Tile& t) {
  constexpr int each = SB_VECTOR_BYTES / (2 * SB_STEP), vectors = Units * SB_UNIT / each;  // outputs a vector
  const int64_t unit = t.steps * SB_UNIT * SB_STEP;
  Words sums[Rows][vectors] = {};
  for (int64_t k = 0; k < t.steps; ++k) {
    Words codes[Rows];
    SB_UNROLL for (int r = 0; r < Rows; ++r) {
      int64_t four;
      memcpy(&four, t.wide + r * t.row + k * SB_STEP, sizeof four);
      codes[r] = repeated(four);
    }
    SB_UNROLL for (int v = 0; v < vectors; ++v) {
      const int output = v * each;
      const Words weights =
          widened(t.weights + output / SB_UNIT * unit + (k * SB_UNIT + output % SB_UNIT) * SB_STEP);
      SB_UNROLL for (int r = 0; r < Rows; ++r) sums[r][v] = added(sums[r][v], codes[r], weights);
    }
  }
  SB_UNROLL for (int r = 0; r < Rows; ++r) {
    int32_t pairs[Units * SB_UNIT * 2];
    memcpy(pairs, sums[r], sizeof pairs);
    for (int o = 0; o < Units * SB_UNIT; ++o)
      t.sums[r * Units * SB_UNIT + o] = pairs[2 * o] + pairs[2 * o + 1];
  }
}
#else
template <int Rows, int Units>
SB_APART void wide_tile(const Tile& t) {
  const int64_t unit = t.steps * SB_UNIT * SB_STEP;
  SB_UNROLL for (int r = 0; r < Rows; ++r) {
    SB_UNROLL for (int u = 0; u < Units; ++u) {
      int32_t sums[SB_UNIT] = {};
      for (int64_t k = 0; k < t.steps; ++k) {
        const uint8_t* codes = t.codes + r * t.row + k * SB_STEP;
        const int8_t* weights = t.weights + u * unit + k * SB_UNIT * SB_STEP;
        for (int o = 0; o < SB_UNIT; ++o) {
          for (int s = 0; s < SB_STEP; ++s) sums[o] += codes[s] * weights[o * SB_STEP + s];
        }
      }
      memcpy(t.sums + (r * Units + u) * SB_UNIT, sums, sizeof sums);
    }
  }
}
#endif

// As many sums at once as there are registers for: 24 of 32, or 12 of 16.
enum { SB_VNNI_ROWS = 12, SB_WIDE_ROWS = SB_VECTOR_BYTES == 64 ? 6 : 3, SB_TILE_UNITS = SB_VECTOR_BYTES == 64 ? 2 : 1 };
enum { SB_MOST_SUMS = SB_VNNI_ROWS * SB_TILE_UNITS * SB_UNIT };

using RunTile = void (*)(const Tile&);

#if SB_VECTOR_BYTES == 64
template <int Units, int... I>
SB_INLINE RunTile vnni_tile_of(int rows, std::integer_sequence<int, I...>) {
  static constexpr RunTile tiles[] = {vnni_tile<I + 1, Units>...};
  return tiles[rows - 1];
}
#endif
template <int Units, int... I>
SB_INLINE RunTile wide_tile_of(int rows, std::integer_sequence<int, I...>) {
  static constexpr RunTile tiles[] = {wide_tile<I + 1, Units>...};
  return tiles[rows - 1];
}
// What multiplies so many rows and units.
SB_INLINE RunTile tile_of(int rows, int units, bool vnni) {
#if SB_VECTOR_BYTES == 64
  std::make_integer_sequence<int, SB_VNNI_ROWS> high;
  if (vnni) return units == 1 ? vnni_tile_of<1>(rows, high) : vnni_tile_of<SB_TILE_UNITS>(rows, high);
#endif
  (void)vnni;
  std::make_integer_sequence<int, SB_WIDE_ROWS> low;
  return units == 1 ? wide_tile_of<1>(rows, low) : wide_tile_of<SB_TILE_UNITS>(rows, low);
}

}  // namespace SB_NAMESPACE
