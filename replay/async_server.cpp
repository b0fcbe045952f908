#include "replay/async_server.h"

#include <algorithm>
#include <queue>
#include <random>
#include <tuple>

#include "core/base/error.h"

namespace foreshard {

namespace {

constexpr std::int64_t kInStep = 20;  // updates per worker before anything is measured

enum class What : std::uint8_t { Update, Ready, Read, Request };  // of what happens at one time, updates come first

struct Turn {
  double at = 0;
  What what = What::Request;
  int worker = 0;
  bool operator>(const Turn& other) const { return std::tie(at, what, worker) > std::tie(other.at, other.what, other.worker); }
};

class Downpour {
 public:
  explicit Downpour(const AsyncServer& server)
      : of_(server), random_(server.seed), read_(static_cast<std::size_t>(server.workers)) {
    FS_ASSERT(server.workers > 0 && server.jitter >= 0 && server.jitter < 1);
    FS_ASSERT(server.speeds.empty() || std::ssize(server.speeds) == server.workers);
    for (int worker = 0; worker < server.workers; ++worker)  // spread over a step, so that they do not all come at once
      events_.push({server.compute.value * worker / server.workers, What::Request, worker});
  }

  AsyncRun run(std::int64_t updates) {
    AsyncRun run{.of_worker = std::vector<double>(read_.size())};
    std::vector<std::int64_t> of_worker(read_.size());
    const std::int64_t before = kInStep * of_.workers;
    double begin = 0;
    while (run.updates < updates) {
      const Turn event = events_.top();
      events_.pop();
      if (event.what != What::Update) {
        go_on(event);
        continue;
      }
      const std::int64_t stale = version_ - read_[static_cast<std::size_t>(event.worker)];
      ++version_;
      events_.push({event.at, What::Request, event.worker});
      if (version_ == before) begin = event.at;
      if (version_ <= before) continue;
      ++run.updates;
      run.time = Seconds{event.at - begin};
      run.staleness += static_cast<double>(stale);
      run.of_worker[static_cast<std::size_t>(event.worker)] += static_cast<double>(stale);
      ++of_worker[static_cast<std::size_t>(event.worker)];
      if (std::ssize(run.by_staleness) <= stale) run.by_staleness.resize(static_cast<std::size_t>(stale) + 1);
      ++run.by_staleness[static_cast<std::size_t>(stale)];
    }
    if (updates > 0) run.staleness /= static_cast<double>(updates);
    for (std::size_t w = 0; w < of_worker.size(); ++w)
      if (of_worker[w] > 0) run.of_worker[w] /= static_cast<double>(of_worker[w]);
    return run;
  }

 private:
  // Each direction of the NIC is used in the order of the events. A worker gets the parameters as they are when their sending begins.
  void go_on(const Turn& event) {
    const auto worker = static_cast<std::size_t>(event.worker);
    if (event.what == What::Request) {
      const double begin = std::max(event.at, out_);
      out_ = begin + of_.pull.value;
      events_.push({begin, What::Read, event.worker});
    } else if (event.what == What::Read) {
      read_[worker] = version_;
      const double speed = of_.speeds.empty() ? 1 : of_.speeds[worker];
      std::uniform_real_distribution<double> uniform(-of_.jitter, of_.jitter);
      const double share = 1 + (of_.jitter > 0 ? uniform(random_) : 0.0);
      events_.push({event.at + of_.pull.value + of_.compute.value * share / speed, What::Ready, event.worker});
    } else {
      in_ = std::max(in_, event.at) + of_.push.value;
      update_ = std::max(update_, in_) + of_.update.value;
      events_.push({update_, What::Update, event.worker});
    }
  }

  const AsyncServer& of_;
  std::mt19937_64 random_;
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> events_ = {};
  double out_ = 0, in_ = 0, update_ = 0;  // when the NIC (sending, receiving) and the processor of the server become free
  std::int64_t version_ = 0;
  std::vector<std::int64_t> read_ = {};  // [worker]
};

}  // namespace

AsyncRun run_async(const AsyncServer& server, std::int64_t updates) { return Downpour(server).run(updates); }

}  // namespace foreshard
