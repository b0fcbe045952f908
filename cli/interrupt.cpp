#include "cli/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <cstring>

namespace foreshard {

// A signal handler can reach nothing but globals; these are the only ones of the program.
static std::atomic<bool> asked_to_stop{false};
static std::atomic<const char*> answer_to_signal{nullptr};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<const char*>::is_always_lock_free,
              "only lock-free atomics may be touched by a signal handler");

static void ask_to_stop(int) {
  asked_to_stop = true;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  if (const char* answer = answer_to_signal) static_cast<void>(!::write(STDERR_FILENO, answer, std::strlen(answer)));
}

const std::atomic<bool>& watch_interrupt(const char* answer) {
  answer_to_signal = answer;
  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGTERM, ask_to_stop);
  return asked_to_stop;
}

bool interrupted() { return asked_to_stop; }

}  // namespace foreshard
