// A small suite for the sanitizers: every type, instruction set and way through the kernel, on exactly sized arrays, so
// that a read or write one past an end is seen. Run by check_memory.sh; the numbers themselves are tested from Python.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "sparse_attention.h"

namespace {

std::mt19937 generator(7);

struct Index {
  std::vector<int64_t> starts, column_starts;
  std::vector<int32_t> keys, rows, entries, low[2], reach[2], longs[2];

  Index(int64_t heads, int64_t length, double density, bool border) {
    starts.resize(heads * (length + 1));
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < length; ++i) {
        starts[h * (length + 1) + i] = int64_t(keys.size());
        for (int64_t j = 0; j < length; ++j) {
          const bool edge = border && (i == 0 || j == 0 || i == length - 1 || j == length - 1);
          if (edge || std::uniform_real_distribution<>()(generator) < density) keys.push_back(int32_t(j));
        }
      }
      starts[h * (length + 1) + length] = int64_t(keys.size());
    }
    column_starts.resize(starts.size());
    rows.resize(keys.size());
    entries.resize(keys.size());
    sb_transpose(starts.data(), keys.data(), heads, length, column_starts.data(), rows.data(), entries.data());
    for (int side = 0; side < 2; ++side) {
      const int64_t tiles = (length + SB_TILE - 1) / SB_TILE;
      low[side].resize(heads * tiles);
      reach[side].resize(heads * tiles);
      longs[side].resize(heads * SB_MAX_LONG);
      const auto& own = side ? column_starts : starts;
      const auto& other = side ? starts : column_starts;
      sb_survey(own.data(), (side ? rows : keys).data(), other.data(), heads, length, low[side].data(),
                reach[side].data(), longs[side].data());
    }
  }
};

template <class T>
struct Tensor {
  std::vector<T> data;
  sb_tensor view;
  Tensor(int64_t batch, int64_t heads, int64_t length, int64_t size) : data(batch * heads * length * size) {
    for (T& x : data) x = sizeof(T) == 2 ? T(0x3f00 + generator() % 64) : T(generator() % 1000 * 0.002 - 1);
    view = {data.data(), length * heads * size, size, heads * size};  // [batch, n, heads, d], as BERT lays it out
  }
};

template <class T, class Sum>
int run(int64_t dtype, int64_t isa, int64_t length, int64_t size, int64_t batch, int64_t heads, int64_t pattern_heads,
        const std::vector<int64_t>& lengths, bool token, double dropout, bool biased, int64_t threads) {
  const Index index(pattern_heads, length, length > 100 ? 0.01 : 0.2, length % 2 == 0);
  std::vector<Tensor<T>> t;
  for (int k = 0; k < 8; ++k) t.emplace_back(batch, heads, length, size);
  const int64_t kept = int64_t(index.keys.size());
  std::vector<Sum> weights(batch * (pattern_heads == 1 ? heads : 1) * kept), bias(kept, Sum(0.5)), grad_bias(kept);
  sb_problem p = {};
  p.batch = batch, p.heads = heads, p.length = length, p.size = size;
  p.pattern_heads = pattern_heads, p.kept = kept;
  p.rows = {index.starts.data(), index.keys.data(), nullptr, index.low[0].data(), index.reach[0].data(),
            index.longs[0].data()};
  p.columns = {index.column_starts.data(), index.rows.data(), index.entries.data(), index.low[1].data(),
               index.reach[1].data(), index.longs[1].data()};
  p.lengths = lengths.empty() ? nullptr : lengths.data();
  p.token = token, p.scale = 0.3, p.dropout = dropout, p.seed = 5;
  p.query = t[0].view, p.key = t[1].view, p.value = t[2].view, p.out = t[3].view;
  p.grad_out = t[4].view, p.grad_query = t[5].view, p.grad_key = t[6].view, p.grad_value = t[7].view;
  p.bias = biased ? bias.data() : nullptr, p.grad_bias = biased ? grad_bias.data() : nullptr;
  p.dtype = dtype, p.threads = threads, p.isa = isa;
  int failed = sb_forward(&p);  // first without saving weights
  p.weights = weights.data();
  failed |= sb_forward(&p) | sb_backward(&p);
  std::vector<uint8_t> flags(kept);
  sb_survivors(&p, 0, 0, flags.data());
  return failed;
}

int check_indices() {
  const int64_t length = 9, shorter = 5;
  const Index index(2, length, 0.4, true);
  int64_t count = 0;
  for (int64_t token = 0; token < 2; ++token) {
    const int64_t kept = sb_crop_count(index.starts.data(), index.keys.data(), 2, length, shorter, token);
    std::vector<int64_t> starts(2 * (shorter + 1)), origin(kept);
    std::vector<int32_t> keys(kept);
    sb_crop(index.starts.data(), index.keys.data(), 2, length, shorter, token, starts.data(), keys.data(),
            origin.data());
    count += kept;
  }
  const std::vector<int64_t> bounds = {0, 3, 4}, offsets = {-8, 0, 2, 30};
  for (int64_t border = 0; border < 2; ++border) {
    std::vector<int64_t> starts(2 * (length + 1));
    std::vector<int32_t> keys(sb_offsets_count(bounds.data(), offsets.data(), 2, length, border));
    sb_offsets(bounds.data(), offsets.data(), 2, length, border, starts.data(), keys.data());
    count += int64_t(keys.size());
  }
  return count == 0;
}

}  // namespace

int main() {
  int failed = check_indices(), cases = 0;
  for (int64_t isa = 0; isa <= sb_best_isa(); ++isa) {
    for (int64_t length : {1, 31, 70, 600}) {
      for (int64_t size : {1, 5, 24, 64}) {
        for (int variant = 0; variant < 4; ++variant) {
          const bool token = variant & 1, biased = variant & 2;
          const int64_t heads = 1 + variant % 3, pattern_heads = variant == 1 ? 1 : heads, threads = 1 + variant % 2;
          const double dropout = variant == 3 ? 0.4 : 0;
          const std::vector<int64_t> lengths = variant ? std::vector<int64_t>{length, length / 2} : std::vector<int64_t>();
          failed |= run<float, float>(SB_FLOAT32, isa, length, size, 2, heads, pattern_heads, lengths, token, dropout,
                                      biased, threads);
          failed |= run<double, double>(SB_FLOAT64, isa, length, size, 2, heads, pattern_heads, lengths, token, dropout,
                                        biased, threads);
          failed |= run<uint16_t, float>(SB_BFLOAT16, isa, length, size, 2, heads, pattern_heads, lengths, token,
                                         dropout, biased, threads);
          cases += 3;
        }
      }
    }
  }
  std::printf("%d cases, %s\n", cases, failed ? "failed" : "clean");
  return failed;
}
