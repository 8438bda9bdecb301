// An index: a pattern's rows and columns at one input length, checked when it is built and never changed after.
#pragma once
#include <memory>
#include <vector>

#include "kernel.h"

struct IndexSide {
  std::vector<int64_t> starts;
  std::vector<int32_t> others, entries, low, reach, longs;

  Side view() const {
    return {starts.data(), others.data(), entries.data(), low.data(), reach.data(), longs.data()};
  }
};

struct Index {
  int64_t heads, length;
  bool token;
  IndexSide rows, columns;
  std::vector<int64_t> origin;  // where each entry stands in the whole pattern; empty: in the same place

  int64_t kept() const { return int64_t(rows.others.size()); }
  int64_t kept_in(int64_t head) const {
    const int64_t* starts = rows.starts.data() + head * (length + 1);
    return starts[length] - starts[0];
  }
};

// The index of a number, held alive by whoever asked; null where there is none.
std::shared_ptr<const Index> find_index(int64_t number);
