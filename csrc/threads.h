// Work handed to threads, each with memory of its own; and what every call is held against before that.
#pragma once
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "sparse_attention.h"

constexpr int64_t most_threads = 4096;

inline bool aligned(const void* data, int64_t width) { return data && uintptr_t(data) % uintptr_t(width) == 0; }

// Memory that a thread keeps from call to call: fresh pages cost more than the work done in them.
class Scratch {
 public:
  ~Scratch() { std::free(data_); }
  char* at_least(size_t bytes) {
    if (bytes > size_) {
      std::free(data_);
      size_ = 0;
      constexpr size_t page = size_t(1) << 21;
      const size_t size = (bytes + page - 1) / page * page;
      data_ = static_cast<char*>(std::aligned_alloc(page, size));
      if (!data_) return nullptr;
      madvise(data_, size, MADV_HUGEPAGE);
      size_ = size;
    }
    return data_;
  }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
};
inline thread_local Scratch scratch;

// Threads take pieces in turn: work(piece, memory) for each of `count`, with so many bytes of scratch. A piece writes only
// what is its own, so who takes which changes nothing. The answer is SB_OK, or what one of them answered.
template <class Work>
int share_out(int64_t count, int64_t threads, size_t bytes, const Work& work) {
  std::atomic<int64_t> counter{0};
  std::atomic<int> failed{SB_OK};
  auto take = [&] {
    char* memory = scratch.at_least(bytes);
    if (!memory) failed = SB_NO_MEMORY;
    for (int64_t mine = counter++; memory && mine < count; mine = counter++) {
      if (const int code = work(mine, memory)) {
        failed = code;
        return;
      }
    }
  };
  const int hands = int(std::min(threads, count));
  if (hands <= 1) {
    take();
  } else {
#pragma omp parallel num_threads(hands)
    take();
  }
  return failed;
}
