#include "sim/forked_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace foreshard::sim {
namespace {

// The child sends frames through the pipe: a Head with the kind of frame and the number of bytes of its payload, then the payload.
enum class Frame : std::uint32_t { Progress, Wrong, Failed, Broken, OutOfMemory, Done };
struct Head {
  Frame frame = Frame::Done;
  std::uint64_t bytes = 0;
};

// False if the reading end of the pipe is closed.
bool write_all(int pipe, const void* from, std::size_t bytes) {
  const char* at = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t written = ::write(pipe, at, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    at += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return true;
}

// Ends this process if the parent has closed the pipe: there is no process left to report an error to.
void send(int pipe, Frame frame, const void* from, std::size_t bytes) {
  const Head head{frame, bytes};
  if (!write_all(pipe, &head, sizeof head) || !write_all(pipe, from, bytes)) _exit(1);
}

[[noreturn]] void run_child(int pipe, const std::function<void(const ForkedProcess::Progress&)>& body) {
  std::signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    body([pipe](double fraction) { send(pipe, Frame::Progress, &fraction, sizeof fraction); });
    send(pipe, Frame::Done, nullptr, 0);
  } catch (const Error& error) {
    send(pipe, Frame::Wrong, error.what(), std::strlen(error.what()));
  } catch (const std::bad_alloc&) {
    send(pipe, Frame::OutOfMemory, nullptr, 0);
  } catch (const DeviceError& error) {
    send(pipe, Frame::Failed, error.what(), std::strlen(error.what()));
  } catch (const std::exception& error) {  // a bug of ours
    send(pipe, Frame::Broken, error.what(), std::strlen(error.what()));
  }
  _exit(0);
}

void wait_for_bytes(int pipe, const std::atomic<bool>& cancel) {
  constexpr int kMilliseconds = 50;
  pollfd poll_pipe{.fd = pipe, .events = POLLIN, .revents = 0};
  do {
    if (cancel.load(std::memory_order_relaxed)) throw Error("cancelled");
  } while (poll(&poll_pipe, 1, kMilliseconds) == 0);
}

// When a child has ended, the kernel frees its memory, which takes 1 ms. Instead of waiting for that, the child is reaped (waitpid) when a
// later one has ended, or by init after the end of this process.
void reap_later(pid_t child) {
  static std::mutex mutex;
  static std::vector<pid_t> children;
  const std::lock_guard lock(mutex);
  std::erase_if(children, [](pid_t ended) { return waitpid(ended, nullptr, WNOHANG) != 0; });
  children.push_back(child);
}

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes) : bytes_(std::max<std::size_t>(1, bytes)) {
  at_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at_ == MAP_FAILED) throw std::bad_alloc();
}

SharedMemory::~SharedMemory() { munmap(at_, bytes_); }

ForkedProcess::ForkedProcess(const std::function<void(const Progress&)>& body) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw DeviceError("pipe", std::strerror(errno));
  std::fflush(nullptr);  // else the child would write this process's buffered output a second time
  pid_ = fork();
  if (pid_ == 0) {
    close(ends[0]);
    run_child(ends[1], body);
  }
  const int code = errno;
  close(ends[1]);
  pipe_ = ends[0];
  if (pid_ < 0) {
    close(pipe_);
    throw DeviceError("fork", std::strerror(code));
  }
}

ForkedProcess::~ForkedProcess() {
  close(pipe_);
  if (pid_ < 0) return;
  if (done_) {
    reap_later(pid_);
  } else {
    kill(pid_, SIGKILL);
    reap();
  }
}

// False at the end of the pipe.
bool ForkedProcess::read(void* into, std::size_t bytes, const std::atomic<bool>* cancel) const {
  char* at = static_cast<char*>(into);
  while (bytes > 0) {
    if (cancel != nullptr) wait_for_bytes(pipe_, *cancel);
    const ssize_t got = ::read(pipe_, at, bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

int ForkedProcess::reap() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

void ForkedProcess::wait(const std::atomic<bool>* cancel, const Progress& progress) {
  for (Head head; read(&head, sizeof head, cancel);) {
    double fraction = 0;
    std::string text;
    switch (head.frame) {
      case Frame::Progress:
        if (!read(&fraction, sizeof fraction, cancel)) break;
        if (progress) progress(fraction);
        continue;
      case Frame::Wrong:
      case Frame::Failed:
      case Frame::Broken:
        text.resize(head.bytes);
        if (!read(text.data(), text.size(), cancel)) break;
        if (head.frame == Frame::Wrong) throw Error(text);
        if (head.frame == Frame::Failed) throw DeviceError("simulation", text);
        throw Bug(text);
      case Frame::OutOfMemory: throw std::bad_alloc();
      case Frame::Done: done_ = true; return;
    }
  }
  const int status = reap();
  throw DeviceError("simulation", WIFSIGNALED(status)
                                      ? "ended by signal " + std::to_string(WTERMSIG(status))
                                      : "ended with status " + std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : -1));
}

}  // namespace foreshard::sim
