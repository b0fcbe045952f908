// Engine: the one door to SimGrid 3.32. A clock, an event queue and a max-min bandwidth solver, with no SimGrid type in
// sight.
//
// Links have no latency and share fairly: every flow gets the same penalty. A route that lists a link k times uses k
// times the flow's rate there (folding). Nothing is checked here beyond assertions: SimGrid aborts on bad numbers, so
// sim/validate looks at them before. SimGrid allows one engine per process: a second thread waits in the constructor
// until the first is gone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/units.h"

namespace foreshard::sim {

// What a completion means to the one who asked for it; given back as it was.
struct Token {
  std::uint32_t what = 0;
  std::uint32_t which = 0;
};

class Listener {
 public:
  virtual void finished(Token token) = 0;

 protected:
  ~Listener() = default;
};

class Engine {
 public:
  explicit Engine(Listener& listener);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // The platform, before start(). Numbers must be finite and above zero.
  int add_link(BytesPerSecond capacity);
  int add_route(const std::vector<int>& links);  // not empty; a link may be listed several times
  int add_worker();                              // computes, one thing at a time, at a speed that may change
  void start();

  // Work. Delays and amounts must be finite and not negative.
  void after(Seconds delay, Token token);
  void transfer(int route, double bytes, Token token);  // bytes above zero
  void compute(int worker, Seconds at_full_speed, Token token);
  void set_speed(int worker, double speed);  // 1: full; exact in the middle of a compute

  Seconds now() const;  // since start()
  void run();           // until nothing is left to happen
  std::int64_t events() const;

 private:
  struct Platform;
  std::unique_ptr<Platform> platform_;
};

}  // namespace foreshard::sim
