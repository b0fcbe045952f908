// SimGridClock: the clock of `simulate`. It implements player::Clock (replay/clock.h, which documents the functions and their units) with
// SimGrid 3.32, and is the only code that uses SimGrid; this header shows none of its types. SimGrid aborts on invalid numbers, so
// replay/validate.h checks them beforehand. A process can make only one such clock in its life, because SimGrid keeps its time and the
// callbacks of every engine until the process ends (sim/forked_process.h).
#pragma once

#include <memory>

#include "replay/clock.h"

namespace foreshard::sim {

class SimGridClock final : public player::Clock {
 public:
  SimGridClock();  // throws Error if this process has made one before
  ~SimGridClock() override;
  SimGridClock(const SimGridClock&) = delete;
  SimGridClock& operator=(const SimGridClock&) = delete;

  int add_link(BytesPerSecond capacity) override;
  int add_route(const std::vector<int>& links) override;
  int add_worker() override;
  void start() override;
  void after(Seconds delay, player::Token token) override;
  void transfer(int route, double bytes, player::Token token) override;
  void compute(int worker, Seconds at_full_speed, player::Token token) override;
  void set_speed(int worker, double speed) override;
  Seconds now() const override;
  void run(player::Listener& listener) override;
  std::int64_t events() const override;

 private:
  struct Platform;
  std::unique_ptr<Platform> platform_;
};

}  // namespace foreshard::sim
