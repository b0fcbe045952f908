// Clock: what advances simulated time. It completes delays, computes whose speed may change, and transfers that share links by
// max-min fairness. `sim` implements it on SimGrid, replay/light_clock without an outside library; the player knows no other.
//
// Links have no latency and share fairly: every transfer gets the same penalty. A route that lists a link k times uses k times the
// transfer's rate there (folding). Numbers are only asserted here; replay/validate checks the plan before.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/units.h"

namespace foreshard::player {

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

class Clock {
 public:
  virtual ~Clock() = default;

  // The platform, before start(). Numbers must be finite and above zero.
  virtual int add_link(BytesPerSecond capacity) = 0;
  virtual int add_route(const std::vector<int>& links) = 0;  // not empty; a link may be listed several times
  virtual int add_worker() = 0;                              // computes, one thing at a time, at a speed that may change
  virtual void start() = 0;

  // Work. Delays and amounts must be finite and not negative.
  virtual void after(Seconds delay, Token token) = 0;
  virtual void transfer(int route, double bytes, Token token) = 0;  // bytes above zero
  virtual void compute(int worker, Seconds at_full_speed, Token token) = 0;
  virtual void set_speed(int worker, double speed) = 0;  // 1: full; exact in the middle of a compute

  virtual Seconds now() const = 0;           // since start()
  virtual void run(Listener& listener) = 0;  // until nothing is left to happen
  virtual std::int64_t events() const = 0;   // completions so far
};

}  // namespace foreshard::player
