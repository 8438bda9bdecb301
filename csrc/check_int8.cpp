// The int8 kernel's part of the suite for the sanitizers: exactly sized arrays, every instruction set and way through it.
#include <cstdio>
#include <random>
#include <vector>

#include "int8_linear.h"

namespace {

std::mt19937 generator(11);

template <class T>
std::vector<T> drawn(int64_t count) {
  std::vector<T> data(count);
  for (T& x : data) x = T(int(generator() % 200) - 100);
  return data;
}

template <class T>
sb_array view(std::vector<T>& data) {
  return {data.data(), int64_t(data.size() * sizeof(T))};
}
template <class T>
sb_matrix view(std::vector<T>& data, int64_t row) {
  return {data.data(), int64_t(data.size() * sizeof(T)), row};
}

// A call whose arrays end where their last number does.
struct Case {
  int64_t units, steps;
  std::vector<float> values, marks, scales, bias, residual, norm_weight, norm_bias, out, out_marks;
  std::vector<uint8_t> codes, out_codes;
  std::vector<uint16_t> narrow_values, narrow_out;
  std::vector<int8_t> weights;
  std::vector<int32_t> sums;
  sb_linear c = {};

  Case(int64_t isa, int64_t rows, int64_t inputs, int64_t outputs, int64_t threads, int way) {
    units = (outputs + SB_UNIT - 1) / SB_UNIT, steps = (inputs + SB_STEP - 1) / SB_STEP;
    const int64_t gap = way % 3, filled = units * SB_UNIT;
    auto span = [&](int64_t width) { return rows ? (rows - 1) * (width + gap) + width : 0; };
    values = drawn<float>(span(inputs)), codes = drawn<uint8_t>(span(inputs)), marks = drawn<float>(2 * rows);
    weights = drawn<int8_t>(filled * steps * SB_STEP), sums = drawn<int32_t>(filled);
    scales = drawn<float>(filled), bias = drawn<float>(filled), residual = drawn<float>(span(outputs));
    norm_weight = drawn<float>(outputs), norm_bias = drawn<float>(outputs);
    out.resize(span(outputs)), out_codes.resize(span(outputs)), out_marks.resize(2 * rows);
    narrow_values = drawn<uint16_t>(span(inputs)), narrow_out.resize(span(outputs));
    c.bytes = sizeof c, c.rows = rows, c.inputs = inputs, c.outputs = outputs;
    if (way & 1) {
      c.codes = view(codes, inputs + gap), c.marks = view(marks);
    } else if (way & 16) {
      c.values = view(narrow_values, inputs + gap), c.value_type = SB_BFLOAT16;
    } else {
      c.values = view(values, inputs + gap);
      if (way & 2 && rows) values.back() = __builtin_nanf("");
    }
    c.weights = view(weights), c.weight_sums = view(sums), c.weight_scales = view(scales), c.bias = view(bias);
    c.activation = way % 3;
    if (way & 2) c.residual = view(residual, outputs + gap);
    if (way & 4) c.norm_weight = view(norm_weight), c.norm_bias = view(norm_bias), c.epsilon = 1e-5;
    if (way & 8) c.out_codes = view(out_codes, outputs + gap), c.out_marks = view(out_marks);
    if (!(way & 8) || way & 1) {
      c.out = way & 16 ? view(narrow_out, outputs + gap) : view(out, outputs + gap);
      c.out_type = way & 16 ? SB_BFLOAT16 : SB_FLOAT32;
    }
    c.threads = threads, c.isa = isa;
  }
};

// Calls that are wrong in one place: all must be refused.
int check_refusals() {
  int accepted = 0;
  auto refuses = [&](int code, auto spoil) {
    Case made(sb_best_linear_isa(), 20, 30, 40, 2, 15);
    spoil(made.c);
    const int found = sb_run_linear(&made.c);
    if (found == code) return;
    std::printf("an int8 call that should be answered with %d was answered with %d\n", code, found);
    ++accepted;
  };
  using C = sb_linear;
  refuses(SB_OK, [](C&) {});
  refuses(SB_BAD_CALL, [](C& c) { c.bytes -= 8; });
  refuses(SB_BAD_CALL, [](C& c) { c.threads = 0; });
  refuses(SB_BAD_CALL, [](C& c) { c.isa = 9; });
  refuses(SB_BAD_CALL, [](C& c) { c.activation = 3; });
  refuses(SB_BAD_CALL, [](C& c) { c.epsilon = -1; });
  refuses(SB_BAD_CALL, [](C& c) { c.value_type = SB_FLOAT16; });
  refuses(SB_BAD_CALL, [](C& c) { c.out_type = SB_FLOAT64; });
  refuses(SB_BAD_CALL, [](C& c) { c.values = c.residual; });
  refuses(SB_BAD_CALL, [](C& c) { c.marks = {nullptr, 0}; });
  refuses(SB_BAD_CALL, [](C& c) { c.out = {}, c.out_codes = {}, c.out_marks = {}; });
  refuses(SB_BAD_SHAPE, [](C& c) { c.rows = -1; });
  refuses(SB_BAD_SHAPE, [](C& c) { c.rows = INT64_MAX; });
  refuses(SB_BAD_SHAPE, [](C& c) { c.inputs = 0; });
  refuses(SB_BAD_SHAPE, [](C& c) { c.outputs = SB_WIDEST + 1; });
  refuses(SB_BAD_WEIGHTS, [](C& c) { c.inputs += 4; });
  refuses(SB_BAD_WEIGHTS, [](C& c) { c.weights.bytes -= 1; });
  refuses(SB_BAD_WEIGHTS, [](C& c) { c.weight_sums.data = nullptr; });
  refuses(SB_BAD_WEIGHTS, [](C& c) { c.weight_scales.bytes += 4; });
  refuses(SB_BAD_BIAS, [](C& c) { c.bias.bytes -= 4; });
  refuses(SB_BAD_BIAS, [](C& c) { c.norm_bias = {nullptr, 0}; });
  refuses(SB_BAD_BIAS, [](C& c) { c.norm_weight.bytes -= 4; });
  refuses(SB_BAD_TENSOR, [](C& c) { c.rows += 1; });
  refuses(SB_BAD_TENSOR, [](C& c) { c.codes.row += 1; });
  refuses(SB_BAD_TENSOR, [](C& c) { c.codes.row = 1; });
  refuses(SB_BAD_TENSOR, [](C& c) { c.codes.row = INT64_MAX; });
  refuses(SB_BAD_TENSOR, [](C& c) { c.residual.bytes -= 1; });
  refuses(SB_BAD_TENSOR, [](C& c) { c.out.data = static_cast<char*>(c.out.data) + 1; });
  refuses(SB_BAD_TENSOR, [](C& c) { c.out = c.residual; });
  refuses(SB_BAD_TENSOR, [](C& c) { c.out_codes.data = c.out.data; });
  refuses(SB_BAD_TENSOR, [](C& c) { c.out_marks = c.marks; });
  return accepted + (sb_run_linear(nullptr) != SB_BAD_CALL);
}

// Steps: several calls at once, of which the first that is wrong is the last.
int check_steps() {
  int wrong = 0;
  auto answers = [&](int code, auto spoil) {
    Case one(sb_best_linear_isa(), 20, 30, 40, 2, 15), other(sb_best_linear_isa(), 20, 40, 8, 1, 4);
    other.c.values = one.c.out;
    sb_call attention = {};
    sb_step steps[] = {{SB_LINEAR_STEP, &one.c}, {SB_LINEAR_STEP, &other.c}, {SB_ATTENTION_STEP, &attention}};
    int64_t count = 2;
    spoil(steps, count, one.c, other.c);
    const int found = sb_run_steps(steps, count);
    if (found == code) return;
    std::printf("steps that should be answered with %d were answered with %d\n", code, found);
    ++wrong;
  };
  using S = sb_step;
  using C = sb_linear;
  answers(SB_OK, [](S*, int64_t&, C&, C&) {});
  answers(SB_OK, [](S*, int64_t& count, C&, C&) { count = 0; });
  answers(SB_BAD_CALL, [](S*, int64_t& count, C&, C&) { count = -1; });
  answers(SB_BAD_CALL, [](S*, int64_t& count, C&, C&) { count = 3; });  // a call of attention that says nothing
  answers(SB_BAD_CALL, [](S* steps, int64_t&, C&, C&) { steps[1].kind = 2; });
  answers(SB_BAD_CALL, [](S* steps, int64_t&, C&, C&) { steps[0].call = nullptr; });
  answers(SB_BAD_SHAPE, [](S*, int64_t&, C& one, C&) { one.rows = -1; });
  answers(SB_BAD_TENSOR, [](S*, int64_t&, C&, C& other) { other.rows += 1; });
  return wrong + (sb_run_steps(nullptr, 0) != SB_BAD_CALL);
}

}  // namespace

int check_int8(int& cases) {
  int failed = check_refusals() + check_steps();
  for (int64_t isa = 0; isa <= sb_best_linear_isa(); ++isa) {
    for (int64_t rows : {0, 1, 13, 50}) {
      for (int64_t inputs : {1, 4, 39, 128}) {
        for (int64_t outputs : {1, 16, 33, 100}) {
          for (int way = 0; way < 32; ++way, ++cases) {
            Case made(isa, rows, inputs, outputs, 1 + way % 2, way);
            failed |= sb_run_linear(&made.c);
          }
        }
      }
    }
  }
  return failed;
}
