// What is on the links at a moment, and how fast. Only what shares a link that could be full with something that began or ended goes
// at another speed than before. Internal to strategy/.
#pragma once

#include <utility>
#include <vector>

#include "strategy/estimate_alone.h"

namespace foreshard {

class Traffic {
 public:
  Traffic(AloneTimes& alone, std::size_t owners);

  void begin(int owner, int kind);
  void end(int owner);
  // {owner, speed relative to being alone} of all whose speed what began and ended since the last time may have changed.
  const std::vector<std::pair<int, double>>& speeds();

 private:
  struct Flow {
    int kind = -1;  // not under way
    int seen = 0;
  };
  struct Way {  // links that all kinds cross alike
    std::vector<int> owners = {};
    double asked = 0;  // of a link, when all are as fast as alone
  };
  void visit(int owner);

  AloneTimes& alone_;
  std::vector<Flow> flows_ = {};  // [owner]
  std::vector<Way> ways_ = {};
  std::vector<int> touched_ = {}, together_ = {}, kinds_ = {};
  std::vector<std::pair<int, double>> speeds_ = {};
  int round_ = 0;
};

}  // namespace foreshard
