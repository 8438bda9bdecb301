// A small suite for the sanitizers: every type, instruction set and way through the kernel, on exactly sized arrays, so
// that a read or write one past an end is seen. Run by check_memory.sh; the numbers themselves are tested from Python.
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "sparse_attention.h"

namespace {

std::mt19937 generator(7);

// A pattern's rows, and its index by number.
struct Index {
  int64_t heads, length;
  std::vector<int64_t> starts;
  std::vector<int32_t> keys;
  int64_t number;

  Index(int64_t heads, int64_t length, double density, bool border, bool token) : heads(heads), length(length) {
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
    number = build(length, token);
  }
  ~Index() { sb_index_free(number); }

  int64_t build(int64_t shorter, bool token) const {
    return sb_index_build(starts.data(), int64_t(starts.size()), keys.data(), int64_t(keys.size()), heads, length,
                          shorter, token);
  }
};

template <class T>
struct Tensor {
  std::vector<T> data;
  sb_tensor view;
  Tensor(int64_t batch, int64_t heads, int64_t length, int64_t size) : data(batch * heads * length * size) {
    for (T& x : data) x = sizeof(T) == 2 ? T(0x3f00 + generator() % 64) : T(generator() % 1000 * 0.002 - 1);
    view = {data.data(), int64_t(data.size() * sizeof(T)), length * heads * size, size, heads * size};  // [batch, n, heads, d], as BERT lays it out
  }
};

template <class T>
sb_array view(std::vector<T>& data) {
  return {data.data(), int64_t(data.size() * sizeof(T))};
}

// A call on exactly sized arrays.
template <class T, class Sum>
struct Case {
  Index index;
  std::vector<Tensor<T>> t;
  std::vector<int64_t> lengths;
  std::vector<Sum> weights, bias, grad_bias;
  sb_call c = {};

  Case(int64_t dtype, int64_t isa, int64_t length, int64_t size, int64_t batch, int64_t heads, int64_t pattern_heads,
       const std::vector<int64_t>& real, bool packed, bool token, double dropout, bool biased, int64_t threads)
      : index(pattern_heads, length, length > 100 ? 0.01 : 0.2, length % 2 == 0, token), lengths(real) {
    int64_t tokens = 0;
    for (int64_t each : real) tokens += each;
    for (int k = 0; k < 8; ++k) t.emplace_back(packed ? 1 : batch, heads, packed ? tokens : length, size);
    const int64_t kept = int64_t(index.keys.size());
    weights.resize(batch * (pattern_heads == 1 ? heads : 1) * kept);
    bias.assign(kept, Sum(0.5));
    grad_bias.resize(kept);
    c.bytes = sizeof c, c.index = index.number;
    c.batch = batch, c.heads = heads, c.length = length, c.size = size;
    if (!lengths.empty()) c.lengths = view(lengths);
    c.packed = packed, c.scale = 0.3, c.dropout = dropout, c.seed = 5;
    c.query = t[0].view, c.key = t[1].view, c.value = t[2].view, c.out = t[3].view;
    c.grad_out = t[4].view, c.grad_query = t[5].view, c.grad_key = t[6].view, c.grad_value = t[7].view;
    if (biased) c.bias = view(bias), c.grad_bias = view(grad_bias);
    c.dtype = dtype, c.threads = threads, c.isa = isa;
  }
};

template <class T, class Sum, class... Arguments>
int run(Arguments... arguments) {
  Case<T, Sum> made(arguments...);
  sb_call& c = made.c;
  const int failed = sb_forward(&c);  // first without saving weights
  c.weights = view(made.weights);
  return failed | sb_forward(&c) | sb_backward(&c);
}

// Calls that do not fit, each wrong in one place: all must be refused, and none may touch what it must not.
int check_refusals() {
  const std::vector<int64_t> real = {40, 17};
  int accepted = 0;
  bool packed = false;
  auto refuses = [&](int code, auto spoil) {
    Case<float, float> made(SB_FLOAT32, sb_best_isa(), 40, 8, 2, 3, 3, real, packed, false, 0.1, true, 2);
    made.c.weights = view(made.weights);
    spoil(made);
    const int found = sb_backward(&made.c), forward = code == SB_BAD_WEIGHTS ? code : sb_forward(&made.c);
    if (found != code || (forward != code && forward != SB_OK)) {
      std::printf("a call that should be answered with %d was answered with %d, %d\n", code, found, forward);
      ++accepted;
    }
  };
  using C = Case<float, float>;
  refuses(SB_BAD_CALL, [](C& x) { x.c.bytes -= 8; });
  refuses(SB_BAD_CALL, [](C& x) { x.c.threads = 0; });
  refuses(SB_BAD_CALL, [](C& x) { x.c.isa = 7; });
  refuses(SB_BAD_CALL, [](C& x) { x.c.dtype = 9; });
  refuses(SB_BAD_CALL, [](C& x) { x.c.dropout = 1; });
  refuses(SB_BAD_INDEX, [](C& x) { x.c.index = 0; });
  refuses(SB_BAD_INDEX, [](C& x) { x.c.index += 1000; });
  refuses(SB_BAD_SHAPE, [](C& x) { x.c.length = 41; });
  refuses(SB_BAD_SHAPE, [](C& x) { x.c.length = 20; });
  refuses(SB_BAD_SHAPE, [](C& x) { x.c.heads = 4; });
  refuses(SB_BAD_SHAPE, [](C& x) { x.c.size = 0; });
  refuses(SB_BAD_SHAPE, [](C& x) { x.c.batch = -1; });
  refuses(SB_BAD_SHAPE, [](C& x) { x.c.batch = INT64_MAX; });
  refuses(SB_BAD_TENSOR, [](C& x) { x.c.size = 9; });
  refuses(SB_BAD_TENSOR, [](C& x) { x.c.dtype = SB_FLOAT64; });
  refuses(SB_BAD_TENSOR, [](C& x) { x.c.key.data = nullptr; });
  refuses(SB_BAD_TENSOR, [](C& x) { x.c.value.bytes -= 1; });
  refuses(SB_BAD_TENSOR, [](C& x) { x.c.query.row += 1; });
  refuses(SB_BAD_TENSOR, [](C& x) { x.c.query.row = INT64_MAX; });
  refuses(SB_BAD_TENSOR, [](C& x) { x.c.query.batch = -1; });
  refuses(SB_BAD_TENSOR, [](C& x) { x.c.grad_key.head = 0; });
  refuses(SB_BAD_TENSOR, [](C& x) { x.c.grad_query.row = 4; });
  refuses(SB_BAD_TENSOR, [](C& x) { x.c.grad_out.data = static_cast<char*>(x.c.grad_out.data) + 1; });
  refuses(SB_BAD_LENGTHS, [](C& x) { x.lengths[1] = 41; });
  refuses(SB_BAD_LENGTHS, [](C& x) { x.lengths[0] = -1; });
  refuses(SB_BAD_LENGTHS, [](C& x) { x.c.lengths.bytes = 8; });
  refuses(SB_BAD_BIAS, [](C& x) { x.c.bias.bytes -= 4; });
  refuses(SB_BAD_BIAS, [](C& x) { x.c.grad_bias.bytes += 4; });
  refuses(SB_BAD_WEIGHTS, [](C& x) { x.c.weights.bytes -= 4; });
  refuses(SB_BAD_WEIGHTS, [](C& x) { x.c.weights = {nullptr, 0}; });
  packed = true;
  refuses(SB_OK, [](C& x) { x.c.query.batch = -1; });
  refuses(SB_BAD_TENSOR, [](C& x) { x.c.packed = 0; });
  refuses(SB_BAD_TENSOR, [](C& x) { x.lengths[1] += 1; });
  refuses(SB_BAD_TENSOR, [](C& x) { x.c.grad_key.row = 4; });
  refuses(SB_BAD_LENGTHS, [](C& x) { x.lengths[1] = 41; });
  refuses(SB_BAD_LENGTHS, [](C& x) { x.lengths[0] = -1; });
  refuses(SB_BAD_LENGTHS, [](C& x) { x.c.lengths = {nullptr, 0}; });
  return accepted + (sb_forward(nullptr) != SB_BAD_CALL);
}

int check_indices() {
  const int64_t length = 9, shorter = 5;
  const Index index(2, length, 0.4, true, false);
  int failed = 0;
  for (int64_t token = 0; token < 2; ++token) {
    const int64_t cropped = index.build(shorter, token), kept = sb_index_count(cropped, 0, SB_ORIGIN);
    std::vector<int64_t> origin(kept);
    failed |= kept <= 0 || sb_index_copy(cropped, 0, SB_ORIGIN, origin.data(), kept * 8) != SB_OK;
    failed |= sb_index_copy(cropped, 0, SB_ORIGIN, origin.data(), kept * 8 + 8) != SB_BAD_PART;
    failed |= sb_index_count(cropped, 0, SB_ENTRIES) != -SB_BAD_PART || sb_index_count(cropped, 2, 0) != -SB_BAD_PART;
    failed |= sb_index_free(cropped) != SB_OK || sb_index_free(cropped) != SB_BAD_INDEX;
  }
  return failed || index.build(length + 1, false) != -SB_BAD_SHAPE || index.build(-1, false) != -SB_BAD_SHAPE;
}

}  // namespace

int check_int8(int& cases);  // check_int8.cpp

int main() {
  int cases = 0, failed = check_indices() + check_refusals() + check_int8(cases);
  for (int64_t isa = 0; isa <= sb_best_isa(); ++isa) {
    for (int64_t length : {1, 31, 70, 600}) {
      for (int64_t size : {1, 5, 24, 64}) {
        for (int variant = 0; variant < 8; ++variant) {
          const bool token = variant & 1, biased = variant & 2, packed = variant > 4;
          const int64_t heads = 1 + variant % 3, pattern_heads = variant == 1 ? 1 : heads, threads = 1 + variant % 2;
          const double dropout = variant % 4 == 3 ? 0.4 : 0;
          const std::vector<int64_t> lengths = variant ? std::vector<int64_t>{length, length / 2} : std::vector<int64_t>();
          failed |= run<float, float>(int64_t(SB_FLOAT32), isa, length, size, 2, heads, pattern_heads, lengths, packed, token, dropout,
                                      biased, threads);
          failed |= run<double, double>(int64_t(SB_FLOAT64), isa, length, size, 2, heads, pattern_heads, lengths, packed, token, dropout,
                                        biased, threads);
          for (int64_t half : {SB_BFLOAT16, SB_FLOAT16}) {
            failed |= run<uint16_t, float>(half, isa, length, size, 2, heads, pattern_heads, lengths, packed, token, dropout,
                                           biased, threads);
          }
          cases += 4;
        }
      }
    }
  }
  std::printf("%d cases, %s\n", cases, failed ? "failed" : "clean");
  return failed;
}
