// The memory one task works in, carved out of a block that its thread keeps from call to call.
#pragma once
#include "dropout.h"
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

// An integer that is known to the compiler when Known > 0: the loop over a row's vectors then unrolls.
template <int Known>
struct Width {
  int value;
  SB_INLINE operator int() const { return Known > 0 ? Known : value; }
};

SB_INLINE int64_t up(int64_t count, int64_t step) { return (count + step - 1) / step * step; }

template <class In>
SB_INLINE In* row_of(const sb_tensor& t, int64_t batch, int64_t head, int64_t row) {
  return static_cast<In*>(t.data) + batch * t.batch + head * t.head + row * t.row;
}

// Rows of a tensor as the kernel reads them: in place where they lie one after another, else packed as they are needed.
template <class In, class T>
struct Source {
  const In* first;
  int64_t stride, size, padded;
  T* packed;  // null: in place
  int64_t packed_stride;

  SB_INLINE Source(const sb_tensor& t, const Task& task, int64_t size, int64_t padded, T* room, int64_t room_stride)
      : first(row_of<In>(t, task.batch, task.head, 0)),
        stride(t.row),
        size(size),
        padded(padded),
        packed(room),
        packed_stride(room_stride) {
    if (sizeof(In) == sizeof(T) && stride == size && size == padded) packed = nullptr;
  }
  SB_APART void pack(int64_t from, int64_t to) const {
    if (!packed) return;
    for (int64_t i = from; i < to; ++i) bring_row(first + i * stride, packed + i * packed_stride, size, padded, T(1));
  }
  SB_INLINE Rows<T> rows() const {
    return packed ? Rows<T>{packed, packed_stride} : Rows<T>{reinterpret_cast<const T*>(first), stride};
  }
};

// Rows of a tensor as the kernel writes them: in place where types and sizes allow, else through a buffer.
#ifndef PAST
#define PAST 1
#endif
template <class In, class T>
struct Sink {
  In* first;
  int64_t stride, size;
  T* buffer;  // null: in place
  bool past;  // results go past the caches

  SB_INLINE Sink(const sb_tensor& t, const Task& task, int64_t size, int64_t padded, T* room)
      : first(row_of<In>(t, task.batch, task.head, 0)), stride(t.row), size(size), buffer(room), past(false) {
    if (sizeof(In) == sizeof(T) && size == padded) buffer = nullptr;
    const int64_t strides = t.row | t.head | t.batch;
    past = !buffer && uintptr_t(t.data) % 64 == 0 && strides * int64_t(sizeof(In)) % 64 == 0 && PAST;
  }
  SB_INLINE In* row(int64_t i) const { return first + i * stride; }
  SB_INLINE T* target(int64_t i) const { return buffer ? buffer : reinterpret_cast<T*>(row(i)); }
  SB_INLINE void done(int64_t i) const {
    if (buffer) send_row(buffer, row(i), size, T(1));
  }
  SB_INLINE void clear(int64_t from, int64_t to) const {
    for (int64_t i = from; i < to; ++i) clear_row(row(i), size);
  }
};

// Asks memory for rows one at a time, long before they are needed: this task's rows in order, then the next task's.
// One row of each stream for each line worked on spreads the traffic evenly under the arithmetic.
struct Stream {
  char *own, *next;
  int64_t own_stride, next_stride, own_end, end, bytes, at;

  template <class Rows>
  SB_INLINE Stream(const Rows& mine, const Rows& after, int64_t length, int64_t next_length, int64_t start)
      : own((char*)mine.first),
        next((char*)after.first),
        own_stride(mine.stride * int64_t(sizeof(*mine.first))),
        next_stride(after.stride * int64_t(sizeof(*after.first))),
        own_end(length),
        end(length + smaller_of<int64_t>(next_length, 1024)),
        bytes(mine.size * int64_t(sizeof(*mine.first))),
        at(start) {}

  SB_INLINE char* row() { return at < own_end ? own + at * own_stride : next + (at - own_end) * next_stride; }
  // `frontier`: what lies before has been read already.
  SB_INLINE void read(int64_t frontier) {
    at = larger_of(at, frontier);
    if (at >= end) return;
    prefetch_row(row(), bytes);
    ++at;
  }
  SB_INLINE void write() {
    if (at >= end) return;
    prefetch_row_to_write(row(), bytes);
    ++at;
  }
};

// The long lines of one task, with what each has gathered so far.
template <class T>
struct LongLines {
  Line lines[SB_MAX_LONG];
  int64_t index[SB_MAX_LONG];  // the line's own position, -1 when this example does not reach it
  int cursor[SB_MAX_LONG];
  T* sums[SB_MAX_LONG];
  T* values[SB_MAX_LONG];

  SB_APART LongLines(const Frame& f, const Task& task, Arena& arena, int64_t padded_sum) {
    for (int s = 0; s < SB_MAX_LONG; ++s) index[s] = -1;
    if (!task.longs) return;
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
