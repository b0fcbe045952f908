// steady_now(): the monotonic clock of this machine (std::chrono::steady_clock), in nanoseconds.
#pragma once

#include <chrono>
#include <cstdint>

namespace foreshard {

inline std::int64_t steady_now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace foreshard
