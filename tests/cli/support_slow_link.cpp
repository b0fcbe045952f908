#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <future>
#include <stdexcept>

#include "tests/cli/slow_link.h"

namespace foreshard {

namespace {

void expect(bool well, const std::string& call) {
  if (!well) throw std::runtime_error(call + ": " + std::strerror(errno));
}

int open_tap(const std::string& name) {
  const int tap = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  expect(tap >= 0, "/dev/net/tun");
  ifreq request = {};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  if (::ioctl(tap, TUNSETIFF, &request) == 0) return tap;
  const int problem = errno;
  ::close(tap);
  throw std::runtime_error("TUNSETIFF: " + std::string(std::strerror(problem)));
}

// The device belongs to the namespace of the thread that opens it; so a thread of its own enters that namespace and ends.
int open_tap_in(const std::string& space, const std::string& name) {
  const auto open = [&] {
    const std::string path = "/run/netns/" + space;
    const int there = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    expect(there >= 0, path);
    const bool entered = ::setns(there, CLONE_NEWNET) == 0;
    ::close(there);
    expect(entered, "setns of " + path);
    return open_tap(name);
  };
  return std::async(std::launch::async, open).get();
}

}  // namespace

SlowLink::SlowLink(const std::string& one, const std::string& other, const std::string& device) {
  ends_[0].descriptor = open_tap_in(one, device);
  try {
    ends_[1].descriptor = open_tap_in(other, device);
  } catch (const std::runtime_error&) {
    ::close(ends_[0].descriptor);
    throw;
  }
  leaving_ = ::eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { carry(); });
}

SlowLink::~SlowLink() {
  static_cast<void>(::eventfd_write(leaving_, 1));
  thread_.join();
  for (const int descriptor : {leaving_, ends_[0].descriptor, ends_[1].descriptor}) ::close(descriptor);
}

void SlowLink::become(Way way) {
  const std::lock_guard lock(mutex_);
  way_ = way;
}

void SlowLink::carry() {
  std::array<pollfd, 3> entries = {{{.fd = ends_[0].descriptor, .events = POLLIN, .revents = 0},
                                    {.fd = ends_[1].descriptor, .events = POLLIN, .revents = 0},
                                    {.fd = leaving_, .events = POLLIN, .revents = 0}}};
  while (entries[2].revents == 0) {
    Time next = Time::max();
    for (const End& end : ends_)
      if (!end.coming.empty()) next = std::min(next, end.coming.front().due);
    const auto left = std::max(next - std::chrono::steady_clock::now(), std::chrono::nanoseconds(0)).count();
    const timespec wait{.tv_sec = left / 1'000'000'000, .tv_nsec = left % 1'000'000'000};
    if (::ppoll(entries.data(), entries.size(), next == Time::max() ? nullptr : &wait, nullptr) < 0) continue;  // a signal
    if (entries[0].revents != 0) take(ends_[0], ends_[1]);
    if (entries[1].revents != 0) take(ends_[1], ends_[0]);
    for (End& end : ends_) deliver(end);
  }
}

void SlowLink::take(const End& from, End& to) {
  const std::lock_guard lock(mutex_);
  std::array<char, 1 << 16> frame;
  std::uniform_real_distribution<double> part(0, 1);
  for (ssize_t got = 0; (got = ::read(from.descriptor, frame.data(), frame.size())) > 0;) {
    if (part(chance_) < way_.loss) {
      ++lost_;
      continue;
    }
    const std::chrono::duration<double, std::micro> takes = way_.delay + way_.jitter * (2 * part(chance_) - 1);
    Time due = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(takes);
    if (!to.coming.empty()) due = std::max(due, to.coming.back().due);
    to.coming.push_back({.due = due, .bytes = {frame.data(), frame.data() + got}});
    ++carried_;
  }
}

void SlowLink::deliver(End& to) {
  const Time now = std::chrono::steady_clock::now();
  for (; !to.coming.empty() && to.coming.front().due <= now; to.coming.pop_front()) {
    const std::vector<char>& bytes = to.coming.front().bytes;
    static_cast<void>(::write(to.descriptor, bytes.data(), bytes.size()));  // a device that is down takes nothing
  }
}

}  // namespace foreshard
