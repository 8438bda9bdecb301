// The gradient in two gathers: over rows (what reaches queries, and each entry's score), then over columns (what
// reaches keys and values). Nothing is scattered, so the sums have one order whatever the number of threads.
//
// Between the two, each entry carries a pair: its weight after dropout, and the gradient of its score.
#pragma once
#include "workspace.h"

namespace SB_NAMESPACE {

template <class In, class T, class NV>
struct BackwardRows {
  const Problem& p;
  const Piece& piece;
  NV nv;
  Frame f;
  int64_t padded, head_first;
  const T* weights;
  T* pairs;
  Dropout dropout;
  Arena arena;
  Source<In, T, NV> key, value, grad;
  Sink<In, T> grad_query;
  LongLines<T> longs;
  T deltas[SB_MAX_LONG];
  T *one_grad, *slopes;
  int32_t* room;

  SB_APART BackwardRows(const Problem& problem, const Piece& t, char* memory, T* pairs, NV width)
      : p(problem),
        piece(t),
        nv(width),
        f(problem, t, false),
        padded(int64_t(nv) * Simd<T>::width),
        head_first(f.starts()[0]),
        weights(static_cast<const T*>(p.weights) +
                (p.pattern_heads == 1 ? t.batch * p.heads + t.head : t.batch) * p.kept),
        pairs(pairs),
        dropout(p.dropout, p.seed, t.batch, t.head),
        arena{memory},
        key(p, p.key, t, nv, arena.take<T>(p.length * padded)),
        value(p, p.value, t, nv, arena.take<T>(p.length * padded)),
        grad(p, p.grad_out, t, nv, nullptr),
        grad_query(p, p.grad_query, t, padded, arena.take<T>(padded)),
        longs(f, t, arena, padded) {
    one_grad = arena.take<T>(padded);
    room = f.moved ? arena.take<int32_t>(SB_TILE * p.length) : nullptr;
    slopes = arena.take<T>(0);
    for (int s = 0; s < SB_MAX_LONG; ++s) {
      if (longs.index[s] >= 0) open_long(s);
    }
  }

  SB_APART void open_long(int s) {
    const int64_t i = longs.index[s];
    const In* g = row_of<In>(p, p.grad_out, piece.batch, piece.head, i);
    const In* o = row_of<In>(p, p.out, piece.batch, piece.head, i);
    T delta = 0;
    for (int64_t c = 0; c < p.size; ++c) delta += widened(g[c]) * widened(o[c]);
    deltas[s] = delta;
    get(longs.lines[s], weights, longs.values[s]);
  }

  // slopes: the gradients of the weights in, of the scores out.
  SB_APART void settle(const Line& line, int from, int count, const T* kept, T delta, T* slopes) {
    const int run = count - (line.tail >= 0 && from + count == line.count);
    T* pair = pairs + 2 * (line.begin - head_first + from);
    for (int k = 0; k < count; ++k) slopes[k] = kept[k] * (slopes[k] - delta);
    for (int k = 0; k < run; ++k) {
      pair[2 * k] = kept[k];
      pair[2 * k + 1] = slopes[k];
    }
    if (run < count) {
      pairs[2 * (line.tail - head_first)] = kept[run];
      pairs[2 * (line.tail - head_first) + 1] = slopes[run];
    }
  }
  // With dropout the pair's weight is the one that survived it.
  SB_APART void drop(int64_t i, const Line& line, int from, int count) {
    if (p.dropout <= 0) return;
    const uint64_t row = dropout.row_key(i);
    for (int k = from; k < from + count; ++k) {
      const int64_t entry = k == line.count - 1 && line.tail >= 0 ? line.tail : line.begin + k;
      pairs[2 * (entry - head_first)] *= dropout.survives(row, line.others[k]) ? T(dropout.factor) : T(0);
    }
  }

  SB_APART void tile(int64_t from, int64_t to) {
    Line lines[SB_TILE];
    T* starts[SB_TILE];
    T* at = slopes;
    for (int64_t i = from; i < to; ++i) {
      const int64_t r = i - from;
      key.ask_to_pack(i);
      value.ask_to_pack(i);
      starts[r] = nullptr;
      if (f.is_long(i)) continue;
      lines[r] = f.line(i, room + r * p.length);
      starts[r] = at;
      at += up(lines[r].count, 16);
      dots(grad.row(i, one_grad), value.rows(), lines[r].others, lines[r].count,
           f.readable(lines[r], 0, lines[r].count), starts[r]);
    }
    for (int64_t r = 0; r < to - from; ++r) {
      if (!starts[r]) continue;
      const Line& line = lines[r];
      const T* kept = weights + line.begin;
      if (line.tail >= 0) {
        get(line, weights, at);
        kept = at;
      }
      if (p.dropout > 0) dropout.apply(from + r, line.others, line.count, starts[r]);
      settle(line, 0, line.count, kept, product(kept, starts[r], line.count), starts[r]);
      drop(from + r, line, 0, line.count);
    }
    for (int64_t r = 0; r < to - from; ++r) {
      if (!starts[r]) continue;
      weighted_sum<true>(key.rows(), lines[r].others, starts[r], lines[r].count, T(p.scale),
                            grad_query.target(from + r), grad_query.past);
      grad_query.done(from + r);
    }
  }

  SB_APART void segment(int s, int64_t to) {
    if (longs.index[s] < 0) return;
    const Line& line = longs.lines[s];
    const int from = longs.cursor[s], count = longs.ready(s, to);
    if (!count) return;
    longs.cursor[s] += count;
    dots(grad.row(longs.index[s], one_grad), value.rows(), line.others + from, count, f.readable(line, from, count),
         slopes);
    if (p.dropout > 0) dropout.apply(longs.index[s], line.others + from, count, slopes);
    settle(line, from, count, longs.values[s] + from, deltas[s], slopes);
    drop(longs.index[s], line, from, count);
    weighted_sum<false>(key.rows(), line.others + from, slopes, count, T(1), longs.sums[s]);
  }

  SB_INLINE void run() {
    sweep_with(*this, key, value);
    for (int s = 0; s < SB_MAX_LONG; ++s) {
      if (longs.index[s] >= 0)
        send_row(longs.sums[s], grad_query.row(longs.index[s]), p.size, T(p.scale));
    }
    settle_stores();
    grad_query.clear_padding(f, piece);
  }
};

template <class In, class T, class NV>
struct BackwardColumns {
  const Problem& p;
  const Piece& piece;
  NV nv;
  Frame f;
  int64_t padded;
  const T* pairs;
  const int32_t* entries;
  Arena arena;
  Source<In, T, NV> query, grad;
  Sink<In, T> grad_key, grad_value;
  LongLines<T> longs;
  T *kept, *slopes;
  int32_t* room;

  SB_APART BackwardColumns(const Problem& problem, const Piece& t, char* memory, const T* pairs,
                            NV width)
      : p(problem),
        piece(t),
        nv(width),
        f(problem, t, true),
        padded(int64_t(nv) * Simd<T>::width),
        pairs(pairs),
        entries(p.columns.entries),
        arena{memory},
        query(p, p.query, t, nv, arena.take<T>(p.length * padded)),
        grad(p, p.grad_out, t, nv, arena.take<T>(p.length * padded)),
        grad_key(p, p.grad_key, t, padded, arena.take<T>(padded)),
        grad_value(p, p.grad_value, t, padded, arena.take<T>(padded)),
        longs(f, t, arena, 2 * padded) {
    room = f.moved ? arena.take<int32_t>(p.length) : nullptr;
    kept = arena.take<T>(p.length);
    slopes = arena.take<T>(p.length);
  }

  // The pairs of a stretch of a column, brought together.
  SB_INLINE void gather(const Line& line, int from, int count) {
    const int run = count - (line.tail >= 0 && from + count == line.count);
    const int32_t* which = entries + line.begin + from;
    for (int k = 0; k < run; ++k) {
      const T* pair = pairs + 2 * int64_t(which[k]);
      kept[k] = pair[0];
      slopes[k] = pair[1];
    }
    if (run < count) {
      const T* pair = pairs + 2 * int64_t(entries[line.tail]);
      kept[run] = pair[0];
      slopes[run] = pair[1];
    }
  }

  SB_APART void tile(int64_t from, int64_t to) {
    for (int64_t j = from; j < to; ++j) {
      query.ask_to_pack(j);
      grad.ask_to_pack(j);
      if (f.is_long(j)) continue;
      const Line line = f.line(j, room);
      gather(line, 0, line.count);
      weighted_sum<true>(query.rows(), line.others, slopes, line.count, T(p.scale), grad_key.target(j), grad_key.past);
      weighted_sum<true>(grad.rows(), line.others, kept, line.count, T(1), grad_value.target(j), grad_value.past);
      grad_key.done(j);
      grad_value.done(j);
    }
  }

  SB_APART void segment(int s, int64_t to) {
    if (longs.index[s] < 0) return;
    const int from = longs.cursor[s], count = longs.ready(s, to);
    longs.cursor[s] += count;
    const int32_t* others = longs.lines[s].others + from;
    gather(longs.lines[s], from, count);
    weighted_sum<false>(query.rows(), others, slopes, count, T(1), longs.sums[s]);
    weighted_sum<false>(grad.rows(), others, kept, count, T(1), longs.sums[s] + padded);
  }

  SB_INLINE void run() {
    sweep_with(*this, query, grad);
    for (int s = 0; s < SB_MAX_LONG; ++s) {
      if (longs.index[s] < 0) continue;
      send_row(longs.sums[s], grad_key.row(longs.index[s]), p.size, T(p.scale));
      send_row(longs.sums[s] + padded, grad_value.row(longs.index[s]), p.size, T(1));
    }
    settle_stores();
    grad_key.clear_padding(f, piece);
    grad_value.clear_padding(f, piece);
  }
};

}  // namespace SB_NAMESPACE
