// steady_now(): the clock of this machine that never goes back, in nanoseconds.
#pragma once

#include <chrono>
#include <cstdint>

namespace foreshard {

inline std::int64_t steady_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace foreshard
