#include "cli/interrupt.h"

#include <csignal>

namespace foreshard {

// A signal handler can reach nothing but a global; this is the only one of the program.
static std::atomic<bool> asked_to_stop{false};
static_assert(std::atomic<bool>::is_always_lock_free, "only lock-free atomics may be touched by a signal handler");

const std::atomic<bool>& watch_interrupt() {
  std::signal(SIGINT, [](int) {
    asked_to_stop = true;
    std::signal(SIGINT, SIG_DFL);
  });
  return asked_to_stop;
}

bool interrupted() { return asked_to_stop; }

}  // namespace foreshard
