// softmax(q k' * scale + bias) v over the kept entries of one head of one example.
#pragma once
#include "workspace.h"

namespace SB_NAMESPACE {

// Turns scores into exponentials and returns 1 / their sum; what lies after the last score is made 0.
// A line whose scores are all -inf has nothing to attend to: its weights are 0.
template <class T>
SB_INLINE T soften(T* scores, int count, T scale) {
  constexpr int w = Simd<T>::width;
  const T none = -__builtin_inf();
  const int whole = (count - 1) / w * w;  // the last vector is taken apart: it may be a part of one
  const Vec<T> last = first_lanes(load(scores + whole) * scale, count - whole, none);
  Vec<T> best = last;
  for (int k = 0; k < whole; k += w) best = larger(best, load(scores + k) * scale);
  T top = max_one(best);
  if (top == none) top = 0;
  Vec<T> total = exponential(last - top);
  store(scores + whole, total);
  for (int k = 0; k < whole; k += w) {
    const Vec<T> e = exponential(load(scores + k) * scale - top);
    store(scores + k, e);
    total += e;
  }
  const T sum = sum_one(total);
  return sum == 0 ? T(0) : 1 / sum;
}

// The same for a line that is short enough to be held in registers; its exponentials go to `out`.
template <class T>
SB_INLINE T soften_short(Short<T> scores, int count, T scale, T* out) {
  constexpr int w = Simd<T>::width, vectors = Short<T>::vectors;
  const T none = -__builtin_inf();
  for (int k = 0; k < vectors; ++k) scores.v[k] = first_lanes(scores.v[k] * scale, count - k * w, none);
  Vec<T> best = scores.v[0], total = {};
  for (int k = 1; k < vectors; ++k) best = larger(best, scores.v[k]);
  T top = max_one(best);
  if (top == none) top = 0;
  for (int k = 0; k < vectors; ++k) {
    const Vec<T> e = exponential(scores.v[k] - top);
    store(out + k * w, e);
    total += e;
  }
  const T sum = sum_one(total);
  return sum == 0 ? T(0) : 1 / sum;
}

template <class T>
SB_INLINE void add_bias(const Line& line, const T* bias, T scale, T* scores) {
  const int run = line.count - (line.tail >= 0);
  for (int k = 0; k < run; ++k) scores[k] = scores[k] * scale + bias[line.begin + k];
  if (line.tail >= 0) scores[run] = scores[run] * scale + bias[line.tail];
}

template <class In, class T, class NV>
struct Forward {
  const Problem& p;
  const Piece& piece;
  NV nv;
  Frame f;
  int64_t padded;
  const T* bias;
  T* weights;  // entries of this head of this example, or null
  Dropout dropout;
  Arena arena;
  Source<In, T, NV> query, key, value;
  Sink<In, T> out;
  LongLines<T> longs;
  T tops[SB_MAX_LONG], totals[SB_MAX_LONG];
  T *scores, *one_query;
  int32_t* room;

  SB_APART Forward(const Problem& problem, const Piece& t, char* memory, NV width)
      : p(problem),
        piece(t),
        nv(width),
        f(problem, t, false),
        padded(int64_t(nv) * Simd<T>::width),
        bias(static_cast<const T*>(p.bias)),
        weights(static_cast<T*>(p.weights)),
        dropout(p.dropout, p.seed, t.batch, t.head),
        arena{memory},
        query(p, p.query, t, nv, nullptr),
        key(p, p.key, t, nv, arena.take<T>(p.length * padded)),
        value(p, p.value, t, nv, arena.take<T>(p.length * padded)),
        out(p, p.out, t, padded, arena.take<T>(padded)),
        longs(f, t, arena, padded) {
    if (bias) bias += t.head * p.bias_stride;
    if (weights) weights += (p.pattern_heads == 1 ? t.batch * p.heads + t.head : t.batch) * p.kept;
    for (int s = 0; s < SB_MAX_LONG; ++s) {
      tops[s] = -__builtin_inf();
      totals[s] = 0;
    }
    one_query = arena.take<T>(padded);
    room = f.moved ? arena.take<int32_t>(SB_TILE * p.length) : nullptr;
    scores = arena.take<T>(0);  // the rest: as much as a tile needs
  }

  // Scores of a stretch of a line, not yet scaled unless there is a bias to add.
  SB_INLINE void score(const T* q, const Line& line, int from, int count, T* out) {
    dots(q, key.rows(), line.others + from, count, f.readable(line, from, count), out);
    if (bias) {
      const Line stretch{nullptr, line.begin + from, count, from + count == line.count ? line.tail : -1};
      add_bias(stretch, bias, T(p.scale), out);
    }
  }
  SB_INLINE T scale_left() const { return bias ? T(1) : T(p.scale); }

  SB_APART void tile(int64_t from, int64_t to) {
    Line lines[SB_TILE];
    T* starts[SB_TILE];
    T factors[SB_TILE];
    T* at = scores;
    Short<T> waiting;  // the scores of the row before, softened while this row's multiply-adds are under way
    int64_t waits = -1;
    auto settle = [&] {
      if (waits >= 0) factors[waits] = soften_short(waiting, lines[waits].count, T(p.scale), starts[waits]);
    };
    for (int64_t i = from; i < to; ++i) {
      const int64_t r = i - from;
      key.ask_to_pack(i);
      value.ask_to_pack(i);
      starts[r] = nullptr;
      if (f.is_long(i)) continue;
      const Line& line = lines[r] = f.line(i, room + r * p.length);
      starts[r] = at;
      at += up(line.count, 16);
      factors[r] = 0;
      if (!line.count) continue;
      const T* q = query.row(i, one_query);
      if (line.count <= Short<T>::most && !bias) {
        const Short<T> scored = short_dots(q, key.rows(), line.others, line.count, f.readable(line, 0, line.count));
        settle();
        waiting = scored;
        waits = r;
      } else {
        score(q, line, 0, line.count, starts[r]);
        factors[r] = soften(starts[r], line.count, scale_left());
      }
    }
    settle();
    if (weights || p.dropout > 0) {
      for (int64_t r = 0; r < to - from; ++r) {
        if (starts[r]) keep(from + r, lines[r], starts[r], factors[r]);
      }
    }
    for (int64_t r = 0; r < to - from; ++r) {
      if (!starts[r]) continue;
      weighted_sum<true>(value.rows(), lines[r].others, starts[r], lines[r].count, factors[r],
                            out.target(from + r), out.past);
      out.done(from + r);
    }
  }

  // Saves a row's weights for the backward pass, and drops some.
  SB_INLINE void keep(int64_t i, const Line& line, T* row, T& factor) {
    if (weights) {
      for (int k = 0; k < line.count; ++k) row[k] *= factor;
      put(line, row, weights);
      factor = 1;
    }
    if (p.dropout > 0) dropout.apply(i, line.others, line.count, row);
  }

  // A running softmax: what was gathered is scaled down whenever a larger score turns up.
  SB_APART void segment(int s, int64_t to) {
    if (longs.index[s] < 0) return;
    const Line& line = longs.lines[s];
    const int from = longs.cursor[s], count = longs.ready(s, to);
    if (!count) return;
    longs.cursor[s] += count;
    T* softened = scores;
    score(query.row(longs.index[s], one_query), line, from, count, softened);
    for (int k = 0; k < count; ++k) softened[k] *= scale_left();
    for (int64_t k = count; k < up(count, Simd<T>::width); ++k) softened[k] = -__builtin_inf();
    if (weights) memcpy(longs.values[s] + from, softened, count * sizeof(T));
    T top = tops[s];
    for (int k = 0; k < count; ++k) top = softened[k] > top ? softened[k] : top;
    const T base = top == -__builtin_inf() ? T(0) : top;
    const T shrink = exponential(all<T>(tops[s] - base))[0];
    T total = totals[s] * shrink;
    for (int k = 0; k < count; k += Simd<T>::width) {
      const Vec<T> e = exponential(load(softened + k) - base);
      store(softened + k, e);
      total += sum_one(e);
    }
    tops[s] = top;
    totals[s] = total;
    if (p.dropout > 0) dropout.apply(longs.index[s], line.others + from, count, softened);
    for (int64_t c = 0; c < padded; ++c) longs.sums[s][c] *= shrink;
    weighted_sum<false>(value.rows(), line.others + from, softened, count, T(1), longs.sums[s]);
  }

  SB_APART void close_longs() {
    for (int s = 0; s < SB_MAX_LONG; ++s) {
      if (longs.index[s] < 0) continue;
      const T factor = totals[s] == 0 ? T(0) : 1 / totals[s];
      send_row(longs.sums[s], out.row(longs.index[s]), p.size, factor);
      if (!weights) continue;
      const T base = tops[s] == -__builtin_inf() ? T(0) : tops[s];
      T* values = longs.values[s];
      for (int k = 0; k < longs.lines[s].count; k += Simd<T>::width)
        store(values + k, exponential(load(values + k) - base) * factor);
      put(longs.lines[s], values, weights);
    }
  }

  SB_INLINE void run() {
    sweep_with(*this, key, value);
    close_longs();
    settle_stores();
    out.clear_padding(f, piece);
  }
};

}  // namespace SB_NAMESPACE
