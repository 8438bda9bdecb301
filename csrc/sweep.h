// The walk over one head of one example: lines in tiles, the rows they gather from brought in just before use.
//
//      lines       others (packed as far as the frontier)
//      tile 0  --> |#######|         |     a tile runs once all it gathers from is packed;
//      tile 1  -->  |#######|        |     long lines take each newly packed block while it is in cache;
//      tile 2  -->   |#######|       |     hot others (long lines of the other side) are packed first.
#pragma once
#include "kernel.h"
#include "rows.h"

namespace SB_NAMESPACE {

// The entries of one line as an example of `length` tokens sees them.
struct Line {
  const int32_t* others;
  int64_t begin;  // of the entries, among all kept entries of the pattern
  int count;      // entries in all
  int64_t tail;   // the last entry when it does not follow the others (anchored tokens), else -1
};

struct Frame {
  const Problem& p;
  const Side& side;
  const Side& across;
  int64_t pattern_head, length;  // length: tokens of this example
  bool moved;                    // the last token stands for the pattern's last position, elsewhere

  SB_INLINE Frame(const Problem& problem, const Piece& piece, bool columns)
      : p(problem),
        side(columns ? problem.columns : problem.rows),
        across(columns ? problem.rows : problem.columns),
        pattern_head(problem.pattern_heads == 1 ? 0 : piece.head),
        length(problem.lengths ? problem.lengths[piece.batch] : problem.length),
        moved(problem.token && length < problem.length) {}

  SB_INLINE int64_t tiles() const { return (p.length + SB_TILE - 1) / SB_TILE; }
  SB_INLINE const int64_t* starts() const { return side.starts + pattern_head * (p.length + 1); }
  SB_INLINE const int32_t* longs() const { return side.longs + pattern_head * SB_MAX_LONG; }
  SB_INLINE const int32_t* hot() const { return across.longs + pattern_head * SB_MAX_LONG; }
  SB_INLINE int64_t origin(int64_t i) const { return moved && i == length - 1 ? p.length - 1 : i; }

  SB_INLINE bool is_long(int64_t i) const {
    const int64_t* s = starts() + origin(i);
    return s[1] - s[0] > SB_LONG && longs()[0] >= 0;
  }

  // `room` holds the others of a line that had to be put together.
  SB_INLINE Line line(int64_t i, int32_t* room) const {
    const int64_t* s = starts() + origin(i);
    const int32_t *first = side.others + s[0], *last = side.others + s[1];
    if (length == p.length) return {first, s[0], int(s[1] - s[0]), -1};
    const int count = below(first, last, moved ? length - 1 : length);
    if (!moved || first == last || last[-1] != p.length - 1) return {first, s[0], count, -1};
    memcpy(room, first, count * sizeof(int32_t));
    room[count] = int32_t(length - 1);
    return {room, s[0], count + 1, s[1] - 1};
  }

  // Whether 7 places after entries [from, from + count) of a line hold others too, whosever they are.
  SB_INLINE bool readable(const Line& line, int from, int count) const {
    return line.tail < 0 && line.begin + from + count + 7 <= p.kept;
  }

  static SB_INLINE int below(const int32_t* first, const int32_t* last, int64_t limit) {
    const int32_t* low = first;
    for (int64_t span = last - first; span > 0;) {
      const int64_t half = span / 2;
      if (low[half] < limit) {
        low += half + 1;
        span -= half + 1;
      } else {
        span = half;
      }
    }
    return int(low - first);
  }
};

// Copies between a line's own order and the entries' places.
template <class T>
SB_INLINE void put(const Line& line, const T* from, T* entries) {
  const int run = line.count - (line.tail >= 0);
  memcpy(entries + line.begin, from, run * sizeof(T));
  if (line.tail >= 0) entries[line.tail] = from[run];
}
template <class T>
SB_INLINE void get(const Line& line, const T* entries, T* to) {
  const int run = line.count - (line.tail >= 0);
  memcpy(to, entries + line.begin, run * sizeof(T));
  if (line.tail >= 0) to[run] = entries[line.tail];
}

// Runs a pass: pack(from, to) brings others in, tile(from, to) works on lines, segment(slot, to) on what long line
// `slot` keeps among others below `to` and has not taken yet.
template <class Pack, class Tile, class Segment>
SB_INLINE void sweep(const Frame& f, const Piece& piece, Pack pack, Tile tile, Segment segment) {
  constexpr int64_t block = 64;
  const int64_t tiles = f.tiles();
  const int32_t *low = f.side.low + f.pattern_head * tiles, *reach = f.side.reach + f.pattern_head * tiles;
  int64_t frontier = 0;
  if (!piece.longs) {
    frontier = f.length;
    for (int64_t t = piece.first; t < piece.last; ++t) frontier = smaller_of<int64_t>(frontier, low[t]);
    if (f.moved) frontier = 0;
  }
  for (int s = 0; s < SB_MAX_LONG && f.hot()[s] >= 0; ++s) {
    const int64_t other = f.hot()[s];
    if (other < f.length) pack(other, other + 1);
  }
  if (f.moved && f.length) pack(f.length - 1, f.length);
  auto advance = [&](int64_t goal) {
    while (frontier < goal) {
      const int64_t to = smaller_of(frontier + block, f.length);
      pack(frontier, to);
      if (piece.longs) {
        for (int s = 0; s < SB_MAX_LONG && f.longs()[s] >= 0; ++s) segment(s, to);
      }
      frontier = to;
    }
  };
  for (int64_t t = piece.first; t < piece.last; ++t) {
    const int64_t from = t * SB_TILE, to = smaller_of<int64_t>(from + SB_TILE, f.length);
    if (from >= to) break;
    advance(f.moved ? f.length : smaller_of<int64_t>(reach[t], f.length));
    tile(from, to);
  }
  if (piece.longs) advance(f.length);
}

}  // namespace SB_NAMESPACE
