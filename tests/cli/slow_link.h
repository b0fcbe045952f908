// A cable between two network namespaces that is long and bad: frames come later, in their order, or not at all. Two TAP devices and a thread
// that carries frames from one to the other; the kernel needs no queueing discipline for it (netem is often not built). The devices offer no
// offloads, so each frame is one Ethernet packet with its checksums.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace foreshard {

class SlowLink {
 public:
  struct Way {                                      // each way
    std::chrono::microseconds delay{0}, jitter{0};  // a frame takes delay - jitter to delay + jitter, and overtakes none
    double loss = 0;                                // share of the frames
  };
  // A device of this name in each of two namespaces that `ip netns` knows, without address and down. Throws std::runtime_error where this is
  // not allowed: it needs root and /dev/net/tun.
  SlowLink(const std::string& one, const std::string& other, const std::string& device);
  ~SlowLink();
  SlowLink(const SlowLink&) = delete;
  SlowLink& operator=(const SlowLink&) = delete;

  void become(Way way);  // for the frames that set out from now on
  std::int64_t carried() const { return carried_; }
  std::int64_t lost() const { return lost_; }

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Frame {
    Time due = {};
    std::vector<char> bytes = {};
  };
  struct End {
    int descriptor = -1;
    std::deque<Frame> coming = {};  // what is on its way to it
  };
  void carry();
  void take(const End& from, End& to);
  static void deliver(End& to);

  std::mutex mutex_;
  Way way_;  // under `mutex_`
  End ends_[2];
  int leaving_ = -1;  // an event: the thread ends
  std::atomic<std::int64_t> carried_ = 0, lost_ = 0;
  std::mt19937_64 chance_{1};
  std::thread thread_;
};

}  // namespace foreshard
