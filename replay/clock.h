// Clock: advances simulated time. It completes delays, computes whose speed may change, and transfers that share links by max-min
// fairness. `sim` implements it on SimGrid, replay/light_clock without an outside library. The player uses this interface only.
//
// Links have no latency and share fairly: every transfer has the same weight. A route that lists a link k times takes k times the
// transfer's rate there, which folding needs. Numbers are only asserted here; replay/validate checks the plan before.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/units.h"

namespace foreshard::player {

// Passed with a request and handed to Listener::finished at its completion. The clock does not read it.
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

class Clock {
 public:
  virtual ~Clock() = default;

  // The platform, to be built before start(). Each returns the number of what it adds. Capacities must be finite and above zero.
  virtual int add_link(BytesPerSecond capacity) = 0;
  virtual int add_route(const std::vector<int>& links) = 0;  // not empty; a link may be listed several times
  virtual int add_worker() = 0;                              // runs one compute at a time, at a speed that may change
  virtual void start() = 0;

  // Requests, which begin at once. Delays and amounts must be finite and not negative.
  virtual void after(Seconds delay, Token token) = 0;
  virtual void transfer(int route, double bytes, Token token) = 0;  // bytes above zero
  virtual void compute(int worker, Seconds at_full_speed, Token token) = 0;
  virtual void set_speed(int worker, double speed) = 0;  // 1: full; also changes the compute that the worker is running

  virtual Seconds now() const = 0;           // since start()
  virtual void run(Listener& listener) = 0;  // returns when no request is left; the listener may make new ones
  virtual std::int64_t events() const = 0;   // completions until now
};

}  // namespace foreshard::player
