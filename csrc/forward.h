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
  bool keeps;  // weights are saved, or dropped
  Dropout dropout;
  Arena arena;
  Source<In, T, NV> query, key, value;
  Sink<In, T> out;
  Group<T, NV> group;
  T* group_sums;  // [lines of a group, padded], unless they go straight to where they belong
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
        keeps(weights || p.dropout > 0),
        dropout(p.dropout, p.seed, t.batch, t.head),
        arena{memory},
        query(p, p.query, t, nv, nullptr),
        key(p, p.key, t, nv, with_zeros(), true),
        value(p, p.value, t, nv, with_zeros(), true),
        out(p, p.out, t, padded, arena.take<T>(padded)),
        group(nv, arena.take<T>(group.rows * padded)),
        group_sums(out.buffer ? arena.take<T>(group.rows * padded) : nullptr),
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

  // Room for rows, and one of zeros after them.
  SB_INLINE T* with_zeros() {
    T* taken = arena.take<T>((p.length + 1) * padded);
    for (int64_t c = 0; c < padded; ++c) taken[p.length * padded + c] = 0;
    return taken;
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

  // Short lines in groups; the others one by one, in two rounds.
  SB_APART void tile(int64_t from, int64_t to) {
    const Frame frame = f;  // copies, which no store can change
    const Source<In, T, NV> keys = key, values = value;
    const bool grouped = !bias && group.reaches(p.length);
    Line lines[SB_TILE];
    int64_t index[SB_TILE];
    T *starts[SB_TILE], factors[SB_TILE], *at = scores;
    int count = 0;
    for (int64_t i = from; i < to; ++i) {
      keys.ask_to_pack(i);
      values.ask_to_pack(i);
      if (frame.is_long(i)) continue;
      const Line line = frame.line(i, room + (i - from) * p.length);
      prefetch(line.others + 256);
      if (grouped && line.count <= group.most) {
        add_to_group(i, line);
        continue;
      }
      lines[count] = line, index[count] = i, starts[count] = at, factors[count] = 0;
      if (line.count) {
        score(query.row(i, one_query), line, 0, line.count, at);
        factors[count] = soften(at, line.count, scale_left());
      }
      at += up(line.count, 16);
      ++count;
    }
    run_group();
    for (int r = 0; r < count; ++r) {
      if (keeps) keep(index[r], lines[r], starts[r], factors[r]);
      weighted_sum<true>(value.rows(), lines[r].others, starts[r], lines[r].count, factors[r], out.target(index[r]),
                         out.past);
      out.done(index[r]);
    }
  }

  SB_INLINE void add_to_group(int64_t i, const Line& line) {
    query.bring_scaled(i, group.next_query(), T(p.scale));
    group.add(i, line, line.tail < 0 && line.begin + group.most <= p.kept, p.length, keeps);
    if (group.full()) run_group();
  }

  SB_APART void run_group() {
    if (!group.count) return;
    group.close(p.length);
    group.score(key.rows().data);
    group.soften();
    if (keeps) keep_group();
    constexpr int w = Simd<T>::width;
    if (group_sums) {
      group.add_up(value.rows().data, [&](int r, int c, Vec<T> sum) { store(group_sums + r * padded + c * w, sum); });
      for (int r = 0; r < group.count; ++r) send_row(group_sums + r * padded, out.row(group.index[r]), p.size, T(1));
    } else if (out.past) {
      group.add_up(value.rows().data, [&](int r, int c, Vec<T> sum) { store_past(out.target(group.index[r]) + c * w, sum); });
    } else {
      group.add_up(value.rows().data, [&](int r, int c, Vec<T> sum) { store(out.target(group.index[r]) + c * w, sum); });
    }
    group.clear();
  }

  SB_APART void keep_group() {
    T row[group.most];
    for (int r = 0; r < group.count; ++r) {
      const Line& line = group.lines[r];
      for (int k = 0; k < line.count; ++k) row[k] = group.scores[k][r];
      keep(group.index[r], line, row, group.factors[r]);
      for (int k = 0; k < line.count; ++k) group.scores[k][r] = row[k];
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
    constexpr int w = Simd<T>::width;
    const T none = -__builtin_inf();
    Vec<T> best = all<T>(tops[s]), sums = {};
    for (int k = 0; k < count; k += w) {
      const Vec<T> scaled = first_lanes(load(softened + k) * scale_left(), count - k, none);
      store(softened + k, scaled);
      best = larger(best, scaled);
    }
    if (weights) memcpy(longs.values[s] + from, softened, count * sizeof(T));
    const T top = max_one(best), base = top == none ? T(0) : top;
    const T shrink = exponential(all<T>(tops[s] - base))[0];
    for (int k = 0; k < count; k += w) {
      const Vec<T> e = exponential(load(softened + k) - base);
      store(softened + k, e);
      sums += e;
    }
    tops[s] = top;
    totals[s] = totals[s] * shrink + sum_one(sums);
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
