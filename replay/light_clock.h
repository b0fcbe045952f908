// The light clock: a Clock without an outside library. It is a heap of events; when a transfer begins or ends, the max-min rates are
// computed again for all transfers that share links with it, directly or through others. Tests compare its times with SimGrid's (to
// 1e-9). Comparison of their speed: docs/decisions/two-clocks.md.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "replay/clock.h"
#include "replay/event_queue.h"
#include "replay/max_min.h"

namespace foreshard::player {

class LightClock final : public Clock {
 public:
  int add_link(BytesPerSecond capacity) override;
  int add_route(const std::vector<int>& links) override;
  int add_worker() override;
  void start() override {}
  void after(Seconds delay, Token token) override;
  void transfer(int route, double bytes, Token token) override;
  void compute(int worker, Seconds at_full_speed, Token token) override;
  void set_speed(int worker, double speed) override;
  Seconds now() const override { return {now_}; }
  void run(Listener& listener) override;
  std::int64_t events() const override { return events_; }

 private:
  // Event::kind. Of a compute or transfer, Event::which is the worker or the transfer, and Event::version its version when the event was
  // planned. Of a delay, they are Token::what and Token::which.
  enum Kind : std::uint32_t { kDelay, kCompute, kTransfer };
  // Work in progress: `left` was left at time `since`, and `speed` per second is done. An event with an older `version` is void.
  struct Progress {
    double left = 0, speed = 0, since = 0;
    std::uint32_t version = 0;
    Token token = {};
  };
  struct Worker {
    double speed = 1;
    bool busy = false;
    Progress work = {};
  };
  struct Transfer {
    int route = -1;                // -1: this element of transfers_ is free
    std::vector<int> places = {};  // [link of its route]: its index in on_link_[link]
    std::uint32_t seen = 0;        // the value of seen_ when gather() last found it
    Progress bytes = {};
  };

  void plan_end(Progress& progress, Kind kind, std::uint32_t which);
  void proceed(Progress& progress, double speed) const;
  void enter(int transfer);
  void leave(int transfer);
  void share();
  void gather(int link);
  const std::vector<double>& rates();
  bool is_current(const Event& event) const;
  Token finish(const Event& event);

  double now_ = 0;
  std::int64_t events_ = 0;
  EventQueue queue_ = {};
  std::vector<double> capacity_ = {};                // [link]
  std::vector<std::vector<LinkShare>> routes_ = {};  // each link once
  std::vector<Worker> workers_ = {};
  std::vector<Transfer> transfers_ = {};
  std::vector<int> free_ = {};                  // free elements of transfers_
  std::vector<std::vector<int>> on_link_ = {};  // [link]: transfers that cross it
  std::vector<int> changed_ = {};               // links where a transfer began or ended since rates were computed
  std::vector<std::uint32_t> link_seen_ = {};   // [link]: the value of seen_ when gather() last found it
  std::uint32_t seen_ = 0;
  std::vector<int> links_ = {}, sharing_ = {};  // of the last gather(): links still to be visited, transfers found
  std::vector<std::span<const LinkShare>> crossings_ = {};
  MaxMin max_min_ = {};
  // Rates that were computed before, by the routes of the transfers in ascending order: training repeats the same sets of transfers.
  struct Hash {
    std::size_t operator()(const std::vector<int>& routes) const;
  };
  std::unordered_map<std::vector<int>, std::vector<double>, Hash> known_ = {};
  std::vector<int> key_ = {};
};

}  // namespace foreshard::player
