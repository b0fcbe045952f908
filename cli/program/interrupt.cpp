#include "cli/program/interrupt.h"

#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>

namespace foreshard {

// A signal handler can use globals only; these are the only globals of the program.
static std::atomic<bool> asked_to_stop{false};
static std::atomic<const char*> answer_to_signal{nullptr};
static std::atomic<std::int64_t> asked_at{0};  // milliseconds
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<const char*>::is_always_lock_free &&
                  std::atomic<std::int64_t>::is_always_lock_free,
              "only lock-free atomics may be touched by a signal handler");

// Milliseconds. `timeout` and launchers send a signal to the process and to its group: a signal so soon after the first is the same.
static constexpr std::int64_t kOnce = 500;

static void ask_to_stop(int signal) {
  timespec time = {};
  clock_gettime(CLOCK_MONOTONIC, &time);
  if (signal == SIGHUP) std::signal(SIGPIPE, SIG_IGN);  // `run | tee log`: tee has ended, too
  const std::int64_t now = std::int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1'000'000;
  if (asked_to_stop.exchange(true)) {
    if (now - asked_at < kOnce) return;
    std::signal(signal, SIG_DFL);
    std::raise(signal);  // delivered when this handler returns
    return;
  }
  asked_at = now;
  if (const char* answer = answer_to_signal) static_cast<void>(!::write(STDERR_FILENO, answer, std::strlen(answer)));
}

const std::atomic<bool>& watch_interrupt(const char* answer) {
  answer_to_signal = answer;
  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGTERM, ask_to_stop);
  if (std::signal(SIGHUP, ask_to_stop) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);
  return asked_to_stop;
}

const std::atomic<bool>& interrupt_flag() { return asked_to_stop; }

bool interrupted() { return asked_to_stop; }

}  // namespace foreshard
