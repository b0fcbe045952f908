// LightClock: a Clock without an outside library: a heap of events, and rates of transfers found anew (max-min) for those that share
// links, directly or through others, with one that began or ended. Tests hold its times to 1e-9 of
// SimGrid's. What it costs beside SimGrid: docs/decisions/two-clocks.md.
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
  // Event::kind. Event::which is the worker or transfer, Event::version its version then; of a delay: Token::what, Token::which.
  enum Kind : std::uint32_t { kDelay, kCompute, kTransfer };
  // Work that is under way: `left` as of `since`, done at `speed` per second. `version` tells its newest event from older ones.
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
    int route = -1;                // -1: a free place
    std::vector<int> places = {};  // in `on_link_`, per link of its route
    std::uint32_t seen = 0;        // by the newest gather()
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
  std::vector<int> free_ = {};                  // places in transfers_
  std::vector<std::vector<int>> on_link_ = {};  // [link]: transfers under way
  std::vector<int> changed_ = {};               // links where a transfer began or ended since the rates were found
  std::vector<std::uint32_t> link_seen_ = {};
  std::uint32_t seen_ = 0;
  std::vector<int> links_ = {}, sharing_ = {};  // of the newest gather()
  std::vector<std::span<const LinkShare>> crossings_ = {};
  MaxMin max_min_ = {};
  // Rates of transfers that share links, by their routes in ascending order: training repeats itself.
  struct Hash {
    std::size_t operator()(const std::vector<int>& routes) const;
  };
  std::unordered_map<std::vector<int>, std::vector<double>, Hash> known_ = {};
  std::vector<int> key_ = {};
};

}  // namespace foreshard::player
