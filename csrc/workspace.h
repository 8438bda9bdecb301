// The memory that one piece of the work needs, carved out of a block that its thread keeps from call to call.
#pragma once
#include "dropout.h"
#include "group.h"
#include "sweep.h"

namespace SB_NAMESPACE {

struct Arena {
  char* at;
  template <class T>
  SB_INLINE T* take(int64_t count) {
    T* taken = reinterpret_cast<T*>(at);
    at += (count * int64_t(sizeof(T)) + 63) / 64 * 64;
    return taken;
  }
};

template <class In>
SB_INLINE In* row_of(const Problem& p, const sb_tensor& t, int64_t batch, int64_t head, int64_t row) {
  const int64_t example = p.first_rows ? p.first_rows[batch] * t.row : batch * t.batch;
  return static_cast<In*>(t.data) + example + head * t.head + row * t.row;
}

// Rows of a tensor as the kernel reads them: in place where they lie one after another, else packed as they are needed.
template <class In, class T, class NV>
struct Source {
  const In *first, *next;  // next: of the head that this thread works on after this one, or null
  int64_t stride, size, length;
  NV nv;
  T* packed;  // null: in place

  SB_INLINE Source(const Problem& p, const sb_tensor& t, const Piece& piece, NV nv, T* room, bool always = false)
      : first(row_of<In>(p, t, piece.batch, piece.head, 0)),
        next(piece.next_head < 0 ? nullptr : row_of<In>(p, t, piece.next_batch, piece.next_head, 0)),
        stride(t.row),
        size(p.size),
        length(p.lengths ? p.lengths[piece.batch] : p.length),
        nv(nv),
        packed(room) {
    // Gathering may look at rows past an example's last, which a packed row need not have.
    const bool whole = !p.first_rows || length == p.length;
    if (!always && whole && sizeof(In) == sizeof(T) && stride == size && size == int(nv) * Simd<T>::width) packed = nullptr;
  }
  SB_INLINE Rows<T, NV> rows() const { return {packed ? packed : reinterpret_cast<const T*>(first), nv}; }
  SB_APART void pack(int64_t from, int64_t to) const {
    if (!packed) return;
    const int64_t padded = int64_t(nv) * Simd<T>::width;
    for (int64_t i = from; i < to; ++i) {
      ask(i + soon);
      if (size == padded) {
        bring_row(first + i * stride, packed + i * padded, padded, padded);
      } else {
        bring_row(first + i * stride, packed + i * padded, size, padded);
      }
    }
  }
  // One row that is read a few times and then no more: where it lies, if it can be read there, else in `room`.
  SB_INLINE const T* row(int64_t i, T* room) const {
    const int64_t padded = int64_t(nv) * Simd<T>::width;
    ask(i + soon);
    if (sizeof(In) == sizeof(T) && size == padded) return reinterpret_cast<const T*>(first + i * stride);
    bring_row(first + i * stride, room, size, padded);
    return room;
  }
  SB_INLINE void bring_scaled(int64_t i, T* room, T scale) const {
    ask(i + soon);
    const int64_t padded = int64_t(nv) * Simd<T>::width;
    if (size == padded) {
      bring_scaled_row(first + i * stride, room, padded, padded, scale);
    } else {
      bring_scaled_row(first + i * stride, room, size, padded, scale);
    }
  }
  // Called once a line: what will be packed is asked for while there is arithmetic to hide the wait behind, at most a
  // head early. Packing itself, and rows read in place, ask only a few rows ahead.
  SB_INLINE void ask_to_pack(int64_t line) const {
    if (packed) ask(line + smaller_of(length, early));
  }

 private:
  static constexpr int64_t soon = 24, early = 512;  // rows

  // Rows of one head lie far apart and no hardware foresees the next one. Past the last row lie those of the next head.
  SB_INLINE void ask(int64_t i) const {
    if (i < length) {
      prefetch_row(first + i * stride, size * sizeof(In));
    } else if (next) {
      prefetch_row(next + (i - length) * stride, size * sizeof(In));
    }
  }
};

// Rows of a tensor as the kernel writes them: in place where types and sizes allow, else through a buffer.
template <class In, class T>
struct Sink {
  In* first;
  int64_t stride, size;
  T* buffer;  // null: in place
  bool past;  // results go past the caches

  // Past the caches only what would not stay in them until someone reads it.
  static constexpr int64_t large = int64_t(2) << 20;

  SB_INLINE Sink(const Problem& p, const sb_tensor& t, const Piece& piece, int64_t padded, T* room)
      : first(row_of<In>(p, t, piece.batch, piece.head, 0)), stride(t.row), size(p.size), buffer(room) {
    if (sizeof(In) == sizeof(T) && size == padded) buffer = nullptr;
    const int64_t strides = (t.row | t.head | t.batch) * int64_t(sizeof(In));
    past = !buffer && uintptr_t(t.data) % 64 == 0 && strides % 64 == 0 &&
           p.tokens * p.heads * p.size * int64_t(sizeof(In)) >= large;
  }
  SB_INLINE In* row(int64_t i) const { return first + i * stride; }
  SB_INLINE T* target(int64_t i) const { return buffer ? buffer : reinterpret_cast<T*>(row(i)); }
  SB_INLINE void done(int64_t i) const {
    if (buffer) send_row(buffer, row(i), size, T(1));
  }
  // Zeros for the padding among the lines of a piece; a packed row has none.
  SB_INLINE void clear_padding(const Frame& f, const Piece& piece) const {
    if (f.p.first_rows) return;
    const int64_t end = smaller_of<int64_t>(f.p.length, piece.last * SB_TILE);
    for (int64_t i = larger_of<int64_t>(f.length, piece.first * SB_TILE); i < end; ++i) clear_row(row(i), size);
  }
};

// Runs a pass whose lines gather from two sources.
template <class Work, class Source>
SB_INLINE void sweep_with(Work& work, const Source& one, const Source& other) {
  sweep(
      work.f, work.piece,
      [&](int64_t from, int64_t to) {
        one.pack(from, to);
        other.pack(from, to);
      },
      [&](int64_t from, int64_t to) { work.tile(from, to); }, [&](int s, int64_t to) { work.segment(s, to); });
}

// The long lines of one piece of the work, with what each has gathered so far.
template <class T>
struct LongLines {
  Line lines[SB_MAX_LONG];
  int64_t index[SB_MAX_LONG];  // the line's own position, -1 when this example does not reach it
  int cursor[SB_MAX_LONG];
  T* sums[SB_MAX_LONG];
  T* values[SB_MAX_LONG];

  SB_APART LongLines(const Frame& f, const Piece& piece, Arena& arena, int64_t padded_sum) {
    for (int s = 0; s < SB_MAX_LONG; ++s) index[s] = -1;
    if (!piece.longs) return;
    for (int s = 0; s < SB_MAX_LONG && f.longs()[s] >= 0; ++s) {
      int64_t i = f.longs()[s];
      if (f.moved && i == f.p.length - 1) {
        i = f.length - 1;
      } else if (i >= f.length - f.moved) {
        continue;
      }
      if (i < 0) continue;
      index[s] = i;
      cursor[s] = 0;
      lines[s] = f.line(i, f.moved ? arena.take<int32_t>(f.p.length) : nullptr);
      sums[s] = arena.take<T>(padded_sum);
      values[s] = arena.take<T>(lines[s].count + 64);
      for (int64_t c = 0; c < padded_sum; ++c) sums[s][c] = 0;
    }
  }
  // How many of line s's next entries lie below `to`.
  SB_INLINE int ready(int s, int64_t to) const {
    const Line& l = lines[s];
    return Frame::below(l.others + cursor[s], l.others + l.count, to);
  }
};

}  // namespace SB_NAMESPACE
