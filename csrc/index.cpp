// Building indices: a pattern's rows are checked, cropped, transposed and surveyed; and the list of those alive.
#include "index.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <unordered_map>

namespace {

constexpr int64_t most_positions = INT32_MAX;

// A pattern's rows, copied before they are checked: whoever handed them over may still write to them.
struct PatternRows {
  std::vector<int64_t> starts;
  std::vector<int32_t> keys;
  int64_t heads, length;

  // Rows in order that share out all the keys, no key outside, and each row's keys rising.
  bool fit() const {
    const int64_t keys_count = int64_t(keys.size());
    int64_t before = 0;
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t* row = starts.data() + h * (length + 1);
      if (row[0] != before) return false;
      for (int64_t i = 0; i < length; ++i) {
        if (row[i + 1] < row[i] || row[i + 1] > keys_count) return false;
        for (int64_t e = row[i]; e < row[i + 1]; ++e) {
          if (keys[e] < 0 || keys[e] >= length || (e > row[i] && keys[e] <= keys[e - 1])) return false;
        }
      }
      before = row[length];
      // A column's map to its rows' entries is 32 bits wide, counted from the head's first.
      if (before - row[0] > most_positions) return false;
    }
    return before == keys_count;
  }

  // Calls use(entry, key) for each kept entry of row i of an input of `tokens` tokens: the pattern's corner, or with
  // its last position moved to the last token.
  template <class Use>
  void row(int64_t head, int64_t i, int64_t tokens, bool moved, Use use) const {
    const int64_t* own = starts.data() + head * (length + 1) + (moved && i == tokens - 1 ? length - 1 : i);
    const int64_t limit = moved ? tokens - 1 : tokens;
    for (int64_t e = own[0]; e < own[1] && keys[e] < limit; ++e) use(e, keys[e]);
    if (moved && own[1] > own[0] && keys[own[1] - 1] == length - 1) use(own[1] - 1, int32_t(tokens - 1));
  }
};

void crop(PatternRows& whole, Index& index) {
  const int64_t length = index.length;
  if (length == whole.length) {
    index.rows.starts = std::move(whole.starts);
    index.rows.others = std::move(whole.keys);
    return;
  }
  index.rows.starts.reserve(index.heads * (length + 1));
  for (int64_t h = 0; h < index.heads; ++h) {
    for (int64_t i = 0; i < length; ++i) {
      index.rows.starts.push_back(index.kept());
      whole.row(h, i, length, index.token, [&](int64_t entry, int32_t key) {
        index.rows.others.push_back(key);
        index.origin.push_back(entry);
      });
    }
    index.rows.starts.push_back(index.kept());
  }
  index.rows.others.shrink_to_fit();
  index.origin.shrink_to_fit();
}

void transpose(Index& index) {
  const int64_t length = index.length;
  IndexSide &rows = index.rows, &columns = index.columns;
  columns.starts.resize(rows.starts.size());
  columns.others.resize(rows.others.size());
  columns.entries.resize(rows.others.size());
  std::vector<int64_t> next(length);
  for (int64_t h = 0; h < index.heads; ++h) {
    const int64_t* from = rows.starts.data() + h * (length + 1);
    int64_t* to = columns.starts.data() + h * (length + 1);
    for (int64_t e = from[0]; e < from[length]; ++e) ++to[rows.others[e] + 1];
    to[0] = from[0];
    for (int64_t j = 0; j < length; ++j) to[j + 1] += to[j];
    std::copy(to, to + length, next.begin());
    for (int64_t i = 0; i < length; ++i) {
      for (int64_t e = from[i]; e < from[i + 1]; ++e) {
        const int64_t slot = next[rows.others[e]]++;
        columns.others[slot] = int32_t(i);
        columns.entries[slot] = int32_t(e - from[0]);
      }
    }
  }
}

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

// What each tile of lines reaches, and which lines are long.
void survey(const Index& index, const IndexSide& across, IndexSide& side) {
  const int64_t length = index.length, tiles = (length + SB_TILE - 1) / SB_TILE;
  side.low.resize(index.heads * tiles);
  side.reach.resize(index.heads * tiles);
  side.longs.assign(index.heads * SB_MAX_LONG, -1);
  for (int64_t h = 0; h < index.heads; ++h) {
    const int64_t* s = side.starts.data() + h * (length + 1);
    const std::vector<int32_t> own = long_lines(s, length);
    const std::vector<int32_t> hot = long_lines(across.starts.data() + h * (length + 1), length);
    std::copy(own.begin(), own.end(), side.longs.begin() + h * SB_MAX_LONG);
    for (int64_t t = 0; t < tiles; ++t) {
      int32_t least = int32_t(length), most = 0;
      for (int64_t i = t * SB_TILE; i < std::min<int64_t>(length, (t + 1) * SB_TILE); ++i) {
        if (contains(own, int32_t(i))) continue;
        // Sorted: the first and the last that are not hot tell the range.
        int64_t a = s[i], b = s[i + 1];
        while (a < b && contains(hot, side.others[a])) ++a;
        while (a < b && contains(hot, side.others[b - 1])) --b;
        if (a == b) continue;
        least = std::min(least, side.others[a]);
        most = std::max(most, side.others[b - 1] + 1);
      }
      side.low[h * tiles + t] = least;
      side.reach[h * tiles + t] = most;
    }
  }
}

// Numbers are never given twice, so one that is no longer alive cannot mean another index.
class Alive {
 public:
  int64_t add(std::shared_ptr<const Index> index) {
    const std::lock_guard<std::mutex> hold(lock_);
    indices_[++last_] = std::move(index);
    return last_;
  }
  std::shared_ptr<const Index> find(int64_t number) {
    const std::lock_guard<std::mutex> hold(lock_);
    const auto found = indices_.find(number);
    return found == indices_.end() ? nullptr : found->second;
  }
  bool remove(int64_t number) {
    std::shared_ptr<const Index> last;  // its memory is given back after the lock
    const std::lock_guard<std::mutex> hold(lock_);
    const auto found = indices_.find(number);
    if (found == indices_.end()) return false;
    last = std::move(found->second);
    indices_.erase(found);
    return true;
  }

 private:
  std::mutex lock_;
  std::unordered_map<int64_t, std::shared_ptr<const Index>> indices_;
  int64_t last_ = 0;
};

Alive& alive() {
  static Alive* list = new Alive;  // never destroyed: threads may outlive it at the end of the process
  return *list;
}

struct Bytes {
  const void* data;
  int64_t count, each;
};

template <class T>
Bytes bytes_of(const std::vector<T>& part) {
  return {part.data(), int64_t(part.size()), int64_t(sizeof(T))};
}

bool find_part(const Index& index, int64_t columns, int64_t part, Bytes& found) {
  if (columns != 0 && columns != 1) return false;
  const IndexSide& side = columns ? index.columns : index.rows;
  switch (part) {
    case SB_STARTS:
      found = bytes_of(side.starts);
      return true;
    case SB_OTHERS:
      found = bytes_of(side.others);
      return true;
    case SB_ENTRIES:
      found = bytes_of(side.entries);
      return columns;
    case SB_LONGS:
      found = bytes_of(side.longs);
      return true;
    case SB_ORIGIN:
      found = bytes_of(index.origin);
      return !columns;
  }
  return false;
}

}  // namespace

std::shared_ptr<const Index> find_index(int64_t number) { return alive().find(number); }

extern "C" {

int64_t sb_index_build(const int64_t* starts, int64_t starts_count, const int32_t* keys, int64_t keys_count,
                       int64_t heads, int64_t pattern_length, int64_t length, int64_t token) {
  if (!starts || (!keys && keys_count)) return -SB_BAD_CALL;
  if (heads < 1 || pattern_length < 1 || pattern_length > most_positions || length < 0 || length > pattern_length)
    return -SB_BAD_SHAPE;
  if (keys_count < 0 || starts_count % heads || starts_count / heads != pattern_length + 1) return -SB_BAD_ROWS;
  try {
    PatternRows whole{{starts, starts + starts_count}, {keys, keys + keys_count}, heads, pattern_length};
    if (!whole.fit()) return -SB_BAD_ROWS;
    auto index = std::make_shared<Index>();
    index->heads = heads, index->length = length, index->token = token != 0;
    crop(whole, *index);
    transpose(*index);
    survey(*index, index->columns, index->rows);
    survey(*index, index->rows, index->columns);
    return alive().add(std::move(index));
  } catch (const std::bad_alloc&) {
    return -SB_NO_MEMORY;
  }
}

int sb_index_free(int64_t index) { return alive().remove(index) ? SB_OK : SB_BAD_INDEX; }

int64_t sb_index_count(int64_t index, int64_t columns, int64_t part) {
  const auto held = find_index(index);
  if (!held) return -SB_BAD_INDEX;
  Bytes found;
  return find_part(*held, columns, part, found) ? found.count : -SB_BAD_PART;
}

int sb_index_copy(int64_t index, int64_t columns, int64_t part, void* to, int64_t bytes) {
  const auto held = find_index(index);
  if (!held) return SB_BAD_INDEX;
  Bytes found;
  if (!find_part(*held, columns, part, found) || bytes != found.count * found.each) return SB_BAD_PART;
  if (!bytes) return SB_OK;
  if (!to) return SB_BAD_CALL;
  memcpy(to, found.data, size_t(bytes));
  return SB_OK;
}
}
