// softmax(q k' * scale + bias) v over the kept entries of one head of one example.
#pragma once
#include "workspace.h"

namespace SB_NAMESPACE {

// Turns scores into exponentials and returns 1 / their sum; scores are padded with -inf to whole vectors.
// A line whose scores are all -inf has nothing to attend to: its weights are 0.
template <class T>
SB_INLINE T soften(T* scores, int count) {
  constexpr int w = Simd<T>::width;
  Vec<T> best = load(scores);
  for (int k = w; k < count; k += w) best = larger(best, load(scores + k));
  T top = max_one(best);
  if (top == -__builtin_inf()) top = 0;
  Vec<T> total = {};
  for (int k = 0; k < count; k += w) {
    const Vec<T> e = exponential(load(scores + k) - top);
    store(scores + k, e);
    total += e;
  }
  const T sum = sum_one(total);
  return sum == 0 ? T(0) : 1 / sum;
}

template <class T>
SB_INLINE void add_bias(const Line& line, const T* bias, T* scores) {
  const int run = line.count - (line.tail >= 0);
  for (int k = 0; k < run; ++k) scores[k] += bias[line.begin + k];
  if (line.tail >= 0) scores[run] += bias[line.tail];
}

template <class In, class T, class NV>
struct Forward {
  const sb_problem& p;
  const Task& task;
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
  T *scores, *queries;
  int32_t* room;

  SB_APART Forward(const sb_problem& problem, const Task& t, char* memory, NV width)
      : p(problem),
        task(t),
        nv(width),
        f(problem, t, false),
        padded(int64_t(nv) * Simd<T>::width),
        bias(static_cast<const T*>(p.bias)),
        weights(static_cast<T*>(p.weights)),
        dropout(p.dropout, p.seed, t.batch, t.head),
        arena{memory},
        query(p.query, t, p.size, nv, nullptr),
        key(p.key, t, p.size, nv, arena.take<T>(p.length * padded)),
        value(p.value, t, p.size, nv, arena.take<T>(p.length * padded)),
        out(p, p.out, t, padded, arena.take<T>(padded)),
        longs(f, t, arena, padded) {
    if (bias) bias += t.head * p.bias_stride;
    if (weights) weights += (p.pattern_heads == 1 ? t.batch * p.heads + t.head : t.batch) * p.kept;
    for (int s = 0; s < SB_MAX_LONG; ++s) {
      tops[s] = -__builtin_inf();
      totals[s] = 0;
    }
    queries = arena.take<T>(SB_TILE * padded);
    room = f.moved ? arena.take<int32_t>(SB_TILE * p.length) : nullptr;
    scores = arena.take<T>(0);  // the rest: as much as a tile needs
  }

  SB_INLINE void score(const T* q, const Line& line, int from, int count, T* out) {
    dots(q, key.rows(), line.others + from, count, out);
    if (bias) add_bias(Line{nullptr, line.begin + from, count, from + count == line.count ? line.tail : -1}, bias, out);
    for (int64_t k = count; k < up(count, Simd<T>::width); ++k) out[k] = -__builtin_inf();
  }

  SB_APART void tile(int64_t from, int64_t to) {
    Line lines[SB_TILE];
    T* starts[SB_TILE];
    T factors[SB_TILE];
    query.bring_rows(from, to, T(p.scale), queries);
    T* at = scores;
    for (int64_t i = from; i < to; ++i) {
      const int64_t r = i - from;
      starts[r] = nullptr;
      if (f.is_long(i)) continue;
      lines[r] = f.line(i, room + r * p.length);
      starts[r] = at;
      at += up(lines[r].count, 16);
      score(queries + r * padded, lines[r], 0, lines[r].count, starts[r]);
    }
    for (int64_t r = 0; r < to - from; ++r) {
      if (!starts[r]) continue;
      factors[r] = lines[r].count ? soften(starts[r], lines[r].count) : T(0);
      if (weights) {
        for (int k = 0; k < lines[r].count; ++k) starts[r][k] *= factors[r];
        put(lines[r], starts[r], weights);
        factors[r] = 1;
      }
      if (p.dropout > 0) dropout.apply(from + r, lines[r].others, lines[r].count, starts[r]);
    }
    for (int64_t r = 0; r < to - from; ++r) {
      if (!starts[r]) continue;
      weighted_sum<true>(value.rows(), lines[r].others, starts[r], lines[r].count, factors[r],
                            out.target(from + r), out.past);
      out.done(from + r);
    }
  }

  // A running softmax: what was gathered is scaled down whenever a larger score turns up.
  SB_APART void segment(int s, int64_t to) {
    if (longs.index[s] < 0) return;
    const Line& line = longs.lines[s];
    const int from = longs.cursor[s], count = longs.ready(s, to);
    if (!count) return;
    longs.cursor[s] += count;
    bring_row(row_of<In>(p.query, task.batch, task.head, longs.index[s]), queries, p.size, padded, T(p.scale));
    T* softened = scores;
    score(queries, line, from, count, softened);
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
    sweep(
        f, task,
        [&](int64_t from, int64_t to) {
          key.pack(from, to);
          value.pack(from, to);
        },
        [&](int64_t from, int64_t to) { tile(from, to); },
        [&](int s, int64_t, int64_t to) { segment(s, to); });
    close_longs();
    settle_stores();
    out.clear(larger_of<int64_t>(f.length, task.first * SB_TILE), smaller_of<int64_t>(p.length, task.last * SB_TILE));
  }
};

}  // namespace SB_NAMESPACE
