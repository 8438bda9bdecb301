// The arrays the kernel walks: crops, transposes, and rows straight from offsets.
#include <algorithm>
#include <vector>

#include "sparse_attention.h"

namespace {

// The pattern as an input of `length` tokens sees it: its corner, or with the last position moved to the last token.
struct Crop {
  const int64_t* starts;
  const int32_t* keys;
  int64_t pattern_length, length;
  bool moved;

  Crop(const int64_t* all_starts, const int32_t* all_keys, int64_t head, int64_t pattern_length, int64_t length,
       int64_t token)
      : starts(all_starts + head * (pattern_length + 1)),
        keys(all_keys),
        pattern_length(pattern_length),
        length(length),
        moved(token && length < pattern_length) {}

  // Calls use(entry, key) for each kept entry of row i.
  template <class Use>
  void row(int64_t i, Use use) const {
    const int64_t from = moved && i == length - 1 ? pattern_length - 1 : i, limit = moved ? length - 1 : length;
    const int64_t last = starts[from + 1];
    for (int64_t e = starts[from]; e < last && keys[e] < limit; ++e) use(e, keys[e]);
    if (moved && last > starts[from] && keys[last - 1] == pattern_length - 1) use(last - 1, int32_t(length - 1));
  }
};

// The lines of one head that are long, or none where there are too many of them.
std::vector<int32_t> long_lines(const int64_t* starts, int64_t length) {
  std::vector<int32_t> found;
  for (int64_t i = 0; i < length; ++i) {
    if (starts[i + 1] - starts[i] <= SB_LONG) continue;
    if (found.size() == SB_MAX_LONG) return {};
    found.push_back(int32_t(i));
  }
  return found;
}

bool contains(const std::vector<int32_t>& sorted, int32_t value) {
  return std::binary_search(sorted.begin(), sorted.end(), value);
}

// Calls use(key) for each key of row i, sorted and once each: the border, and the row's offsets.
template <class Use>
void offset_row(const int64_t* first, const int64_t* last, int64_t length, bool border, int64_t i, Use use) {
  if (border && (i == 0 || i == length - 1)) {
    for (int64_t j = 0; j < length; ++j) use(j);
    return;
  }
  if (border) use(0);
  for (const int64_t* o = first; o < last; ++o) {
    const int64_t j = i + *o;
    if (j < (border ? 1 : 0) || j >= (border ? length - 1 : length)) continue;
    use(j);
  }
  if (border) use(length - 1);
}

}  // namespace

extern "C" {

int64_t sb_crop_count(const int64_t* starts, const int32_t* keys, int64_t heads, int64_t pattern_length, int64_t length,
                      int64_t token) {
  int64_t count = 0;
  for (int64_t h = 0; h < heads; ++h) {
    const Crop crop(starts, keys, h, pattern_length, length, token);
    for (int64_t i = 0; i < length; ++i) crop.row(i, [&](int64_t, int32_t) { ++count; });
  }
  return count;
}

void sb_crop(const int64_t* starts, const int32_t* keys, int64_t heads, int64_t pattern_length, int64_t length,
             int64_t token, int64_t* new_starts, int32_t* new_keys, int64_t* origin) {
  int64_t count = 0;
  for (int64_t h = 0; h < heads; ++h) {
    const Crop crop(starts, keys, h, pattern_length, length, token);
    int64_t* head_starts = new_starts + h * (length + 1);
    for (int64_t i = 0; i < length; ++i) {
      head_starts[i] = count;
      crop.row(i, [&](int64_t entry, int32_t key) {
        new_keys[count] = key;
        origin[count++] = entry;
      });
    }
    head_starts[length] = count;
  }
}

void sb_transpose(const int64_t* starts, const int32_t* keys, int64_t heads, int64_t length, int64_t* column_starts,
                  int32_t* rows, int32_t* entries) {
  std::vector<int64_t> next(length);
  for (int64_t h = 0; h < heads; ++h) {
    const int64_t* s = starts + h * (length + 1);
    int64_t* columns = column_starts + h * (length + 1);
    std::fill(columns, columns + length + 1, 0);
    for (int64_t e = s[0]; e < s[length]; ++e) ++columns[keys[e] + 1];
    columns[0] = s[0];
    for (int64_t j = 0; j < length; ++j) columns[j + 1] += columns[j];
    std::copy(columns, columns + length, next.begin());
    for (int64_t i = 0; i < length; ++i) {
      for (int64_t e = s[i]; e < s[i + 1]; ++e) {
        const int64_t slot = next[keys[e]]++;
        rows[slot] = int32_t(i);
        entries[slot] = int32_t(e - s[0]);
      }
    }
  }
}

void sb_survey(const int64_t* starts, const int32_t* others, const int64_t* other_starts, int64_t heads, int64_t length,
               int32_t* low, int32_t* reach, int32_t* longs) {
  const int64_t tiles = (length + SB_TILE - 1) / SB_TILE;
  for (int64_t h = 0; h < heads; ++h) {
    const int64_t* s = starts + h * (length + 1);
    const std::vector<int32_t> own = long_lines(s, length), hot = long_lines(other_starts + h * (length + 1), length);
    for (size_t k = 0; k < SB_MAX_LONG; ++k) longs[h * SB_MAX_LONG + k] = k < own.size() ? own[k] : -1;
    for (int64_t t = 0; t < tiles; ++t) {
      int32_t least = int32_t(length), most = 0;
      for (int64_t i = t * SB_TILE; i < std::min<int64_t>(length, (t + 1) * SB_TILE); ++i) {
        if (contains(own, int32_t(i))) continue;
        // Sorted: the first and the last that are not hot tell the range.
        int64_t a = s[i], b = s[i + 1];
        while (a < b && contains(hot, others[a])) ++a;
        while (a < b && contains(hot, others[b - 1])) --b;
        if (a == b) continue;
        least = std::min(least, others[a]);
        most = std::max(most, others[b - 1] + 1);
      }
      low[h * tiles + t] = least;
      reach[h * tiles + t] = most;
    }
  }
}

int64_t sb_offsets_count(const int64_t* offset_starts, const int64_t* offsets, int64_t heads, int64_t length,
                         int64_t border) {
  int64_t count = 0;
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t i = 0; i < length; ++i)
      offset_row(offsets + offset_starts[h], offsets + offset_starts[h + 1], length, border != 0, i,
                 [&](int64_t) { ++count; });
  }
  return count;
}

void sb_offsets(const int64_t* offset_starts, const int64_t* offsets, int64_t heads, int64_t length, int64_t border,
                int64_t* starts, int32_t* keys) {
  int64_t count = 0;
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t i = 0; i < length; ++i) {
      starts[h * (length + 1) + i] = count;
      offset_row(offsets + offset_starts[h], offsets + offset_starts[h + 1], length, border != 0, i,
                 [&](int64_t j) { keys[count++] = int32_t(j); });
    }
    starts[h * (length + 1) + length] = count;
  }
}
}
