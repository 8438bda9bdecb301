// A block of rows through one linear layer; compiled once per instruction set, SB_RUN_ROWS names the one it offers.
#include "int8_kernel.h"

#include "int8_product.h"
#include "int8_rows.h"

namespace SB_NAMESPACE {

template <class T>
SB_INLINE T* row_of(const sb_matrix& m, int64_t row) {
  return static_cast<T*>(m.data) + row * m.row;
}
template <class T>
SB_INLINE const T* array_of(const sb_array& a) {
  return static_cast<const T*>(a.data);
}

// A row's marks as a tile needs them. They may come from outside: what is no code is taken for 0.
struct Factors {
  float scale;
  int32_t zero;
  SB_INLINE Factors(const Marks& m) : scale(m.scale), zero(m.zero >= 0.0f && m.zero <= 255.0f ? int32_t(m.zero) : 0) {}
};

struct Block {
  const sb_linear& c;
  int64_t from, rows, inputs, outputs;  // both filled up to whole steps and units
  bool vnni, straight;                  // straight: products need no more than goes to `out` tile by tile
  char* memory;
  const uint8_t* codes;
  int64_t code_row;
  int16_t* wide;
  Factors* factors;  // [rows]
  float* values;  // [rows, outputs], unless straight

  template <class T>
  SB_INLINE T* take(int64_t count) {
    T* taken = reinterpret_cast<T*>(memory);
    memory += (count * int64_t(sizeof(T)) + 63) / 64 * 64;
    return taken;
  }

  SB_INLINE Block(const sb_linear& call, int64_t from, int64_t to, char* memory)
      : c(call),
        from(from),
        rows(to - from),
        inputs(steps_of(c) * SB_STEP),
        outputs(units_of(c) * SB_UNIT),
        vnni(c.isa == SB_VNNI),
        straight(!c.residual.data && !c.norm_weight.data && !c.out_codes.data && outputs == c.outputs),
        memory(memory) {
    bring_codes();
    wide = SB_VECTOR_BYTES > 16 && !vnni ? widen() : nullptr;
    values = straight ? nullptr : take<float>(rows * outputs);
  }

  // Codes as a tile reads them: as they came where they fill their steps, else copied, or made from values.
  SB_INLINE void bring_codes() {
    factors = take<Factors>(rows);
    const Marks* marks = array_of<Marks>(c.marks) + (c.codes.data ? from : 0);
    for (int64_t r = 0; c.codes.data && r < rows; ++r) factors[r] = Factors(marks[r]);
    if (c.codes.data && inputs == c.inputs) {
      codes = row_of<uint8_t>(c.codes, from);
      code_row = c.codes.row;
      return;
    }
    uint8_t* made = take<uint8_t>(rows * inputs);
    float* widened = take<float>(c.value_type == SB_BFLOAT16 ? c.inputs : 0);
    for (int64_t r = 0; r < rows; ++r) {
      uint8_t* row = made + r * inputs;
      for (int64_t k = c.inputs; k < inputs; ++k) row[k] = 0;
      if (c.codes.data) {
        memcpy(row, row_of<uint8_t>(c.codes, from + r), size_t(c.inputs));
      } else {
        const float* values = widened;
        if (c.value_type == SB_BFLOAT16) {
          bring_row(row_of<BFloat16>(c.values, from + r), widened, c.inputs, c.inputs);
        } else {
          values = row_of<float>(c.values, from + r);
        }
        factors[r] = Factors(quantise_row(values, c.inputs, span_of(values, c.inputs), row));
      }
    }
    codes = made, code_row = inputs;
  }

  SB_INLINE int16_t* widen() {
    int16_t* made = take<int16_t>(rows * inputs);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t k = 0; k < inputs; ++k) made[r * inputs + k] = codes[r * code_row + k];
    }
    return made;
  }

  static SB_INLINE void put(float* to, Vec<float> x) { store(to, x); }
  static SB_INLINE void put(BFloat16* to, Vec<float> x) { store_narrow(to, x); }

  // From whole sums to numbers, for `count` rows from `first` on, and the outputs of neighbouring units. to: the first row's.
  template <int Activation, int Units, class To>
  SB_APART void finish_tile(const int32_t* sums, int64_t first, int64_t count, int64_t o, To* to, int64_t to_row) {
    constexpr int vectors = Units * SB_UNIT / w32;
    Vec<float> scales[vectors], bias[vectors];
    Whole weight_sums[vectors];
    SB_UNROLL for (int v = 0; v < vectors; ++v) {
      scales[v] = load(array_of<float>(c.weight_scales) + o + v * w32);
      bias[v] = load(array_of<float>(c.bias) + o + v * w32);
      weight_sums[v] = load(array_of<int32_t>(c.weight_sums) + o + v * w32);
    }
    for (const Factors* row = factors + first; row < factors + first + count; ++row, to += to_row) {
      const float scale = row->scale;
      const int32_t zero = row->zero;
      SB_UNROLL for (int v = 0; v < vectors; ++v, sums += w32) {
        const Whole whole = load(sums) - weight_sums[v] * zero;
        Vec<float> x = __builtin_convertvector(whole, Vec<float>) * scales[v] * scale + bias[v];
        if (Activation == SB_GELU) x = gelu(x);
        if (Activation == SB_RELU) x = relu(x);
        put(to + v * w32, x);
      }
    }
  }
  // Numbers go to `out`, in its type, if nothing else happens to them.
  template <int Activation, int Units>
  SB_INLINE void finish_tile(const int32_t* sums, int64_t first, int64_t count, int64_t o) {
    if (!straight) return finish_tile<Activation, Units>(sums, first, count, o, values + first * outputs + o, outputs);
    if (c.out_type == SB_FLOAT32)
      return finish_tile<Activation, Units>(sums, first, count, o, row_of<float>(c.out, from + first) + o, c.out.row);
    finish_tile<Activation, Units>(sums, first, count, o, row_of<BFloat16>(c.out, from + first) + o, c.out.row);
  }
  template <int Units>
  SB_INLINE void finish_tile(const int32_t* sums, int64_t first, int64_t count, int64_t unit) {
    const int64_t o = unit * SB_UNIT;
    if (c.activation == SB_GELU) return finish_tile<SB_GELU, Units>(sums, first, count, o);
    if (c.activation == SB_RELU) return finish_tile<SB_RELU, Units>(sums, first, count, o);
    finish_tile<SB_AS_IS, Units>(sums, first, count, o);
  }

  SB_APART void multiply() {
    alignas(64) int32_t sums[SB_MOST_SUMS];
    const int64_t units = units_of(c), steps = steps_of(c), high = vnni ? SB_VNNI_ROWS : SB_WIDE_ROWS;
    for (int64_t u = 0; u < units; u += SB_TILE_UNITS) {
      const int64_t across = smaller_of<int64_t>(SB_TILE_UNITS, units - u);
      for (int64_t r = 0; r < rows; r += high) {
        const int64_t down = smaller_of(high, rows - r);
        const Tile tile = {codes + r * code_row, wide + (wide ? r * inputs : 0), wide ? inputs : code_row,
                           array_of<int8_t>(c.weights) + u * steps * SB_UNIT * SB_STEP, steps, sums};
        tile_of(int(down), int(across), vnni)(tile);
        if (across == 1) {
          finish_tile<1>(sums, r, down, u);
        } else {
          finish_tile<SB_TILE_UNITS>(sums, r, down, u);
        }
      }
    }
  }

  // A few rows at a time, each step for all of them: no row waits for its own sums.
  SB_APART void finish_rows() {
    constexpr int few = 4;
    for (int64_t first = 0; first < rows; first += few) {
      const int count = int(smaller_of<int64_t>(few, rows - first));
      float* results[few];
      Span spans[few];
      for (int r = 0; r < count; ++r) results[r] = values + (first + r) * outputs;
      if (c.norm_weight.data) {
        normalise(first, count, results, spans);
      } else {
        for (int r = 0; c.residual.data && r < count; ++r)
          add_row(results[r], row_of<float>(c.residual, from + first + r), c.outputs);
        for (int r = 0; c.out_codes.data && r < count; ++r) spans[r] = span_of(results[r], c.outputs);
        for (int r = 0; c.out.data && c.out_type == SB_FLOAT32 && r < count; ++r)
          memcpy(row_of<float>(c.out, from + first + r), results[r], size_t(c.outputs) * 4);
      }
      for (int r = 0; c.out.data && c.out_type == SB_BFLOAT16 && r < count; ++r)
        send_row(results[r], row_of<BFloat16>(c.out, from + first + r), c.outputs, 1.0f);
      for (int r = 0; c.out_codes.data && r < count; ++r) {
        const int64_t row = from + first + r;
        static_cast<Marks*>(c.out_marks.data)[row] =
            quantise_row(results[r], c.outputs, spans[r], row_of<uint8_t>(c.out_codes, row));
      }
    }
  }
  // Results go straight to `out` where they are asked for.
  SB_INLINE void normalise(int64_t first, int count, float** results, Span* spans) {
    float means[4], scales[4];
    for (int r = 0; r < count; ++r) {
      const float sum = c.residual.data ? add_row(results[r], row_of<float>(c.residual, from + first + r), c.outputs)
                                        : sum_of(results[r], c.outputs);
      means[r] = sum / float(c.outputs);
    }
    for (int r = 0; r < count; ++r) scales[r] = norm_factor(results[r], c.outputs, means[r], float(c.epsilon));
    const NormWeights norm = {array_of<float>(c.norm_weight), array_of<float>(c.norm_bias)};
    for (int r = 0; r < count; ++r) {
      float* to = c.out.data && c.out_type == SB_FLOAT32 ? row_of<float>(c.out, from + first + r) : results[r];
      spans[r] = normalise_row(results[r], c.outputs, means[r], scales[r], norm, to);
      results[r] = to;
    }
  }
};

}  // namespace SB_NAMESPACE

void SB_RUN_ROWS(const sb_linear& call, int64_t from, int64_t to, char* memory) {
  SB_NAMESPACE::Block block(call, from, to, memory);
  block.multiply();
  if (!block.straight) block.finish_rows();
}
