// Which attention weights survive dropout: a pure function of (seed, batch element, head, query, key), so it is the
// same whatever the number of threads and can be asked again in the backward pass.
#pragma once
#include "simd.h"

namespace SB_NAMESPACE {

SB_INLINE uint64_t mixed(uint64_t x) {  // splitmix64's finaliser
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

struct Dropout {
  uint32_t threshold;  // a weight falls when its 32 random bits are below this
  double factor;       // what the survivors are multiplied by
  uint64_t stream;     // (seed, batch element, head)

  SB_INLINE Dropout(double rate, uint64_t seed, int64_t batch, int64_t head)
      : threshold(uint32_t(rate * 4294967296.0 > 4294967295.0 ? 4294967295.0 : rate * 4294967296.0)),
        factor(1.0 / (1.0 - rate)),
        stream(mixed(mixed(mixed(seed + 0x9e3779b97f4a7c15ull) + uint64_t(batch)) + uint64_t(head))) {}

  SB_INLINE uint64_t row_key(int64_t query) const { return mixed(stream + uint64_t(query) * 0x9e3779b97f4a7c15ull); }

  static SB_INLINE uint32_t bits(uint64_t row, int32_t key) {
    uint32_t x = uint32_t(row) + uint32_t(key) * 0x9e3779b9u;
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = ((x ^ (x >> 15)) * 0x846ca68bu) ^ uint32_t(row >> 32);
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
  }
  SB_INLINE bool survives(uint64_t row, int32_t key) const { return bits(row, key) >= threshold; }

  // weights[k] *= 0 or factor
  template <class T>
  SB_INLINE void apply(int64_t query, const int32_t* keys, int count, T* weights) const {
    const uint64_t row = row_key(query);
    for (int k = 0; k < count; ++k) weights[k] *= survives(row, keys[k]) ? T(factor) : T(0);
  }
};

}  // namespace SB_NAMESPACE
