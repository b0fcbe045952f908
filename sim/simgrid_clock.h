// SimGridClock: the Clock of `simulate`, and the one door to SimGrid 3.32. No SimGrid type is in sight. SimGrid aborts on bad
// numbers, so replay/validate looks at them before. A process may have one such clock in its life (sim/own_process.h): SimGrid keeps
// its time and the callbacks of every engine.
#pragma once

#include <memory>

#include "replay/clock.h"

namespace foreshard::sim {

class SimGridClock final : public player::Clock {
 public:
  SimGridClock();  // throws Error when the process has had one
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
