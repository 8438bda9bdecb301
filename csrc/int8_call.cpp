// The C interface of int8 layers: checks a call field by field, cuts its rows into blocks, hands them to threads.
#include <cmath>

#include "int8_kernel.h"
#include "threads.h"

namespace {

constexpr int64_t most_rows = INT32_MAX;

struct Range {
  const char *from, *to;
};

bool has(const sb_matrix& m) { return m.data || m.bytes; }
bool has(const sb_array& a) { return a.data || a.bytes; }

// Whether the memory holds `rows` rows of `columns` numbers that do not lie over each other.
bool fits(const sb_matrix& m, int64_t rows, int64_t columns, int64_t width) {
  if (!aligned(m.data, width) || m.bytes < 0 || m.row < columns) return false;
  const int64_t left = m.bytes / width - columns;
  int64_t last;
  return left >= 0 && !__builtin_mul_overflow(m.row, rows - 1, &last) && last <= left;
}

bool fits(const sb_array& a, int64_t count, int64_t width) { return aligned(a.data, width) && a.bytes == count * width; }

Range range_of(const sb_matrix& m, int64_t rows, int64_t columns, int64_t width) {
  const char* from = static_cast<const char*>(m.data);
  return {from, m.data ? from + ((rows - 1) * m.row + columns) * width : from};
}
Range range_of(const sb_array& a) {
  const char* from = static_cast<const char*>(a.data);
  return {from, a.data ? from + a.bytes : from};
}
bool apart(const Range& a, const Range& b) { return a.from == a.to || b.from == b.to || a.to <= b.from || b.to <= a.from; }

bool is_type(int64_t type) { return type == SB_FLOAT32 || type == SB_BFLOAT16; }
int64_t width_of(int64_t type) { return type == SB_BFLOAT16 ? 2 : 4; }

int check_settings(const sb_linear& c) {
  if (c.isa < SB_PORTABLE || c.isa > sb_best_linear_isa()) return SB_BAD_CALL;
  if (c.threads < 1 || c.threads > most_threads) return SB_BAD_CALL;
  if (c.activation < SB_AS_IS || c.activation > SB_RELU) return SB_BAD_CALL;
  if (!is_type(c.value_type) || !is_type(c.out_type)) return SB_BAD_CALL;
  return c.epsilon >= 0 && std::isfinite(c.epsilon) ? SB_OK : SB_BAD_CALL;
}

int check_shape(const sb_linear& c) {
  if (c.rows < 0 || c.rows > most_rows) return SB_BAD_SHAPE;
  const bool fit = c.inputs >= 1 && c.inputs <= SB_WIDEST && c.outputs >= 1 && c.outputs <= SB_WIDEST;
  return fit ? SB_OK : SB_BAD_SHAPE;
}

// What a layer consists of, whatever the rows are.
int check_layer(const sb_linear& c) {
  const int64_t outputs = units_of(c) * SB_UNIT;
  if (!fits(c.weights, outputs * steps_of(c) * SB_STEP, 1) || !fits(c.weight_sums, outputs, 4)) return SB_BAD_WEIGHTS;
  if (!fits(c.weight_scales, outputs, 4)) return SB_BAD_WEIGHTS;
  if (!fits(c.bias, outputs, 4)) return SB_BAD_BIAS;
  if (has(c.norm_weight) != has(c.norm_bias)) return SB_BAD_BIAS;
  if (has(c.norm_weight) && (!fits(c.norm_weight, c.outputs, 4) || !fits(c.norm_bias, c.outputs, 4))) return SB_BAD_BIAS;
  return SB_OK;
}

int check_rows(const sb_linear& c) {
  if (has(c.values) == has(c.codes) || has(c.codes) != has(c.marks)) return SB_BAD_CALL;
  if (has(c.out_codes) != has(c.out_marks) || !(has(c.out) || has(c.out_codes))) return SB_BAD_CALL;
  if (has(c.values) && !fits(c.values, c.rows, c.inputs, width_of(c.value_type))) return SB_BAD_TENSOR;
  if (has(c.codes) && (!fits(c.codes, c.rows, c.inputs, 1) || !fits(c.marks, 2 * c.rows, 4))) return SB_BAD_TENSOR;
  if (has(c.residual) && !fits(c.residual, c.rows, c.outputs, 4)) return SB_BAD_TENSOR;
  if (has(c.out) && !fits(c.out, c.rows, c.outputs, width_of(c.out_type))) return SB_BAD_TENSOR;
  if (has(c.out_codes) && (!fits(c.out_codes, c.rows, c.outputs, 1) || !fits(c.out_marks, 2 * c.rows, 4)))
    return SB_BAD_TENSOR;
  return SB_OK;
}

// Results must lie apart from each other and from all that is read: other threads may still be reading it.
int check_apart(const sb_linear& c) {
  const Range results[] = {range_of(c.out, c.rows, c.outputs, width_of(c.out_type)),
                           range_of(c.out_codes, c.rows, c.outputs, 1), range_of(c.out_marks)};
  const Range read[] = {range_of(c.values, c.rows, c.inputs, width_of(c.value_type)), range_of(c.codes, c.rows, c.inputs, 1),
                        range_of(c.residual, c.rows, c.outputs, 4), range_of(c.marks), range_of(c.weights),
                        range_of(c.weight_sums), range_of(c.weight_scales), range_of(c.bias), range_of(c.norm_weight),
                        range_of(c.norm_bias)};
  for (int k = 0; k < 3; ++k) {
    for (const Range& other : read) {
      if (!apart(results[k], other)) return SB_BAD_TENSOR;
    }
    for (int other = 0; other < k; ++other) {
      if (!apart(results[k], results[other])) return SB_BAD_TENSOR;
    }
  }
  return SB_OK;
}

int check(const sb_linear* call) {
  if (!call || call->bytes != int64_t(sizeof(sb_linear))) return SB_BAD_CALL;
  int wrong = check_settings(*call);
  if (!wrong) wrong = check_shape(*call);
  if (!wrong) wrong = check_layer(*call);
  if (!wrong && call->rows) wrong = check_rows(*call);
  if (!wrong && call->rows) wrong = check_apart(*call);
  return wrong;
}

// Rows that go through a layer together: enough that weights are not read for a few rows alone, and few enough that what
// is made of them stays in the second-level cache beside the weights. A multiple of every tile's height.
int64_t block_rows(const sb_linear& c) {
  constexpr int64_t least = 12, most = 96, bytes = 192 << 10;
  const int64_t fitting = bytes / (units_of(c) * SB_UNIT * 4) / least * least;
  const int64_t fair = (c.rows + c.threads * least - 1) / (c.threads * least) * least;
  return std::clamp(std::min(fitting, fair), least, most);
}

// Codes, the same widened, marks, values, one row of inputs; each begins on a cache line.
size_t block_bytes(const sb_linear& c, int64_t rows) {
  const int64_t inputs = steps_of(c) * SB_STEP, outputs = units_of(c) * SB_UNIT;
  return size_t(rows * (3 * inputs + 8 + 4 * outputs) + 4 * inputs + 5 * 64);
}

RunRows runner(const sb_linear& c) {
#if defined(__x86_64__)
  if (c.isa >= SB_AVX512) return run_rows_avx512;
  if (c.isa == SB_AVX2) return run_rows_avx2;
#endif
  (void)c;
  return run_rows_portable;
}

// A row's numbers depend on that row alone.
int run_blocks(const sb_linear& c) {
  const int64_t each = block_rows(c), blocks = (c.rows + each - 1) / each;
  const RunRows run = runner(c);
  return share_out(blocks, c.threads, block_bytes(c, each), [&](int64_t mine, char* memory) -> int {
    run(c, mine * each, std::min(c.rows, (mine + 1) * each), memory);
    return SB_OK;
  });
}

}  // namespace

extern "C" {

int sb_best_linear_isa() {
#if defined(__x86_64__)
  if (sb_best_isa() == SB_AVX512 && __builtin_cpu_supports("avx512vnni")) return SB_VNNI;
#endif
  return sb_best_isa();
}

int sb_run_linear(const sb_linear* call) {
  if (const int wrong = check(call)) return wrong;
  return call->rows ? run_blocks(*call) : int(SB_OK);
}
}
