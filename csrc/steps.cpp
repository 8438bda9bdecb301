// Calls one after another: each is checked when it is its turn, and the first that is refused ends them.
#include "int8_linear.h"

extern "C" int sb_run_steps(const sb_step* steps, int64_t count) {
  if (!steps || count < 0) return SB_BAD_CALL;
  for (int64_t k = 0; k < count; ++k) {
    if (steps[k].kind < SB_LINEAR_STEP || steps[k].kind > SB_ATTENTION_STEP) return SB_BAD_CALL;
  }
  for (int64_t k = 0; k < count; ++k) {
    const void* call = steps[k].call;
    const int code = steps[k].kind == SB_LINEAR_STEP ? sb_run_linear(static_cast<const sb_linear*>(call))
                                                     : sb_forward(static_cast<const sb_call*>(call));
    if (code) return code;
  }
  return SB_OK;
}
