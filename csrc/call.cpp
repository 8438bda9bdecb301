// Checks a call field by field, in the order in which later checks rely on earlier ones.
#include "call.h"

#include <cmath>
#include <utility>

#include "threads.h"

namespace {

int64_t width_of(int64_t dtype) { return dtype == SB_FLOAT64 ? 8 : dtype == SB_FLOAT32 ? 4 : 2; }

int64_t width_of_sums(int64_t dtype) { return dtype == SB_FLOAT64 ? 8 : 4; }

// factor * count + more <= limit, whatever the numbers are.
bool within(int64_t factor, int64_t count, int64_t more, int64_t limit) {
  int64_t product, sum;
  return !__builtin_mul_overflow(factor, count, &product) && !__builtin_add_overflow(product, more, &sum) && sum <= limit;
}

bool empty(const sb_call& c, const Checked& held) { return held.tokens == 0 || c.heads == 0; }

struct Steps {
  int64_t stride, count;
};

// Whether the tensor's memory holds its last row. The steps come out sorted by their stride.
bool readable(const sb_call& c, const Checked& held, const sb_tensor& t, Steps (&steps)[3]) {
  steps[0] = {t.row, c.packed ? held.tokens : c.length}, steps[1] = {t.head, c.heads};
  steps[2] = {c.packed ? 0 : t.batch, c.packed ? 1 : c.batch};
  std::sort(steps, steps + 3, [](const Steps& a, const Steps& b) { return a.stride < b.stride; });
  if (!aligned(t.data, width_of(c.dtype)) || steps[0].stride < 0 || t.bytes < 0) return false;
  int64_t left = t.bytes / width_of(c.dtype) - c.size;
  if (left < 0) return false;
  for (const Steps& step : steps) {
    if (!within(step.stride, step.count - 1, 0, left)) return false;
    left -= step.stride * (step.count - 1);
  }
  return true;
}

bool readable(const sb_call& c, const Checked& held, const sb_tensor& t) {
  Steps steps[3];
  return readable(c, held, t, steps);
}

// Readable, and no two rows share memory: threads write to them at the same time.
bool writable(const sb_call& c, const Checked& held, const sb_tensor& t) {
  Steps steps[3];
  if (!readable(c, held, t, steps)) return false;
  int64_t span = c.size;
  for (const Steps& step : steps) {
    if (step.count == 1) continue;
    if (step.stride < span) return false;
    span += step.stride * (step.count - 1);
  }
  return true;
}

int check_sizes(const sb_call& c, const Index& index) {
  if (c.batch < 0 || c.heads < 0 || c.size < 1 || c.length != index.length) return SB_BAD_SHAPE;
  if (c.heads && index.heads != 1 && index.heads != c.heads) return SB_BAD_SHAPE;
  // Pieces of the work are counted in 64 bits, a row's vectors in 31.
  if (c.size > INT32_MAX || !within(c.batch, std::max<int64_t>(c.heads, 1), 0, INT32_MAX)) return SB_BAD_SHAPE;
  return SB_OK;
}

int check_settings(const sb_call& c) {
  if (c.dtype < SB_FLOAT32 || c.dtype > SB_FLOAT16 || c.isa < SB_PORTABLE || c.isa > sb_best_isa()) return SB_BAD_CALL;
  if (c.threads < 1 || c.threads > most_threads) return SB_BAD_CALL;
  if (!(c.dropout >= 0 && c.dropout < 1) || std::isnan(c.scale)) return SB_BAD_CALL;
  return SB_OK;
}

int check_tensors(const sb_call& c, const Checked& held, Direction direction) {
  for (const sb_tensor* t : {&c.query, &c.key, &c.value}) {
    if (!readable(c, held, *t)) return SB_BAD_TENSOR;
  }
  if (direction == FORWARD_CALL) return writable(c, held, c.out) ? SB_OK : SB_BAD_TENSOR;
  for (const sb_tensor* t : {&c.out, &c.grad_out}) {
    if (!readable(c, held, *t)) return SB_BAD_TENSOR;
  }
  for (const sb_tensor* t : {&c.grad_query, &c.grad_key, &c.grad_value}) {
    if (!writable(c, held, *t)) return SB_BAD_TENSOR;
  }
  return SB_OK;
}

// Copies the lengths, and counts tokens: of a packed row, to where each example begins in it.
int check_lengths(const sb_call& c, Checked& held) {
  std::vector<int64_t>& lengths = held.lengths;
  if (__builtin_mul_overflow(c.batch, c.length, &held.tokens)) return SB_BAD_SHAPE;
  if (!c.lengths.data) return c.lengths.bytes || (c.packed && c.batch) ? SB_BAD_LENGTHS : SB_OK;
  if (c.lengths.bytes != 8 * c.batch || !aligned(c.lengths.data, 8)) return SB_BAD_LENGTHS;
  const int64_t* given = static_cast<const int64_t*>(c.lengths.data);
  lengths.assign(given, given + c.batch);
  const bool fit = std::all_of(lengths.begin(), lengths.end(), [&](int64_t n) { return n >= 0 && n <= c.length; });
  if (!fit || !c.packed) return fit ? SB_OK : SB_BAD_LENGTHS;
  held.first_rows.resize(lengths.size());
  held.tokens = 0;
  for (size_t k = 0; k < lengths.size(); ++k) held.first_rows[k] = held.tokens, held.tokens += lengths[k];
  return SB_OK;
}

// Values per kept entry, for so many heads; none at all is allowed where `optional`.
bool fits(const sb_call& c, const sb_array& a, int64_t kept, int64_t times, bool optional) {
  const int64_t width = width_of_sums(c.dtype);
  if (!a.data && !a.bytes) return optional || !kept || !times;
  return within(kept, times, 0, INT64_MAX / 8) && a.bytes == kept * times * width && (!a.bytes || aligned(a.data, width));
}

int check_entries(const sb_call& c, const Index& index, Direction direction) {
  const int64_t kept = index.kept();
  const bool shared = index.heads == 1, backward = direction == BACKWARD_CALL;
  auto bias_fits = [&](const sb_array& a, bool optional) {
    return fits(c, a, kept, 1, optional) || (shared && fits(c, a, kept, c.heads, optional));
  };
  if (!bias_fits(c.bias, true)) return SB_BAD_BIAS;
  if (backward && c.bias.data && (!bias_fits(c.grad_bias, false) || c.grad_bias.bytes != c.bias.bytes))
    return SB_BAD_BIAS;
  const int64_t times = shared ? c.batch * c.heads : c.batch;
  return fits(c, c.weights, kept, times, !backward) ? SB_OK : SB_BAD_WEIGHTS;
}

Problem problem_of(const sb_call& c, const Checked& held, Direction direction) {
  const Index& index = *held.index;
  Problem p = {};
  p.batch = c.batch, p.heads = c.heads, p.length = c.length, p.size = c.size;
  p.pattern_heads = index.heads, p.kept = index.kept();
  p.rows = index.rows.view(), p.columns = index.columns.view();
  p.lengths = c.lengths.data ? held.lengths.data() : nullptr;
  p.first_rows = c.packed ? held.first_rows.data() : nullptr, p.tokens = held.tokens;
  p.token = index.token, p.scale = c.scale, p.dropout = c.dropout, p.seed = c.seed;
  p.query = c.query, p.key = c.key, p.value = c.value, p.out = c.out;
  p.grad_out = c.grad_out, p.grad_query = c.grad_query, p.grad_key = c.grad_key, p.grad_value = c.grad_value;
  p.bias = c.bias.data, p.bias_stride = c.bias.bytes == index.kept() * width_of_sums(c.dtype) ? 0 : index.kept();
  p.grad_bias = direction == BACKWARD_CALL && c.bias.data ? c.grad_bias.data : nullptr;
  p.weights = c.weights.data;
  p.dtype = c.dtype, p.threads = c.threads, p.isa = c.isa;
  return p;
}

}  // namespace

int check_call(const sb_call* call, Direction direction, Checked& checked) {
  if (!call || call->bytes != int64_t(sizeof(sb_call))) return SB_BAD_CALL;
  const sb_call& c = *call;
  checked.index = find_index(c.index);
  if (!checked.index) return SB_BAD_INDEX;
  int wrong = check_settings(c);
  if (!wrong) wrong = check_sizes(c, *checked.index);
  if (!wrong) wrong = check_lengths(c, checked);
  if (!wrong && !empty(c, checked)) wrong = check_tensors(c, checked, direction);
  if (!wrong) wrong = check_entries(c, *checked.index, direction);
  if (!wrong) checked.problem = problem_of(c, checked, direction);
  return wrong;
}
