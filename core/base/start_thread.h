// Starts threads so that a refusal of the system is an error with a reason, not an uncaught exception.
#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/error.h"

namespace foreshard {

// The error for a thread that the system did not start.
inline DeviceError refused_thread(const std::system_error& why) {
  return {"start of a thread",
          why.code().message() +
              " (limits: of threads ulimit -u, of the memory for their stacks ulimit -v, or those of the container)"};
}

// A thread that runs `work`. Throws DeviceError if the system starts none.
template <class Work>
std::thread start_thread(Work&& work) {
  try {
    return std::thread(std::forward<Work>(work));
  } catch (const std::system_error& why) {
    throw refused_thread(why);
  }
}

// As start_thread, for work that other threads do where none is started: an empty thread (not joinable) instead of an error.
template <class Work>
std::thread try_thread(Work&& work) {
  try {
    return std::thread(std::forward<Work>(work));
  } catch (const std::system_error&) {
    return {};
  }
}

}  // namespace foreshard
