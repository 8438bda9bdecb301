// From a call to a problem: every size is checked before anything is read, so that the kernel may trust what it gets.
#pragma once
#include "index.h"

// A problem, and what it must keep alive while the kernel works on it.
struct Checked {
  Problem problem;
  std::shared_ptr<const Index> index;
  std::vector<int64_t> lengths;     // copied: whoever called may still write to theirs
  std::vector<int64_t> first_rows;  // of the examples of a packed row
  int64_t tokens = 0;               // padding too
};

enum Direction { FORWARD_CALL, BACKWARD_CALL };

// SB_OK and a problem, or what is wrong with the call.
int check_call(const sb_call* call, Direction direction, Checked& checked);
