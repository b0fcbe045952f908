#include "strategy/estimate_traffic.h"

#include <algorithm>

namespace foreshard {

namespace {
constexpr double kFull = 1 + 1e-9;
}

Traffic::Traffic(AloneTimes& alone, std::size_t owners) : alone_(alone), flows_(owners) {
  ways_.resize(static_cast<std::size_t>(alone.crossings()));
}

void Traffic::begin(int owner, int kind) {
  flows_[static_cast<std::size_t>(owner)].kind = kind;
  for (const AloneTimes::Crossing& crossing : alone_.crossed(kind)) {
    Way& way = ways_[static_cast<std::size_t>(crossing.which)];
    way.owners.push_back(owner), way.asked += crossing.share;
  }
  touched_.push_back(owner);
}

void Traffic::end(int owner) {
  Flow& flow = flows_[static_cast<std::size_t>(owner)];
  for (const AloneTimes::Crossing& crossing : alone_.crossed(flow.kind)) {
    Way& way = ways_[static_cast<std::size_t>(crossing.which)];
    if (way.asked > kFull)
      for (const int other : way.owners)
        if (other != owner) touched_.push_back(other);
    const auto last = std::find(way.owners.begin(), way.owners.end(), owner);
    *last = way.owners.back();
    way.owners.pop_back();
    way.asked = way.owners.empty() ? 0 : way.asked - crossing.share;
  }
  flow.kind = -1;
}

// An owner with all that it shares full links with, directly or through others.
void Traffic::visit(int first) {
  together_.assign(1, first);
  flows_[static_cast<std::size_t>(first)].seen = round_;
  for (std::size_t i = 0; i < together_.size(); ++i)
    for (const AloneTimes::Crossing& crossing : alone_.crossed(flows_[static_cast<std::size_t>(together_[i])].kind)) {
      const Way& way = ways_[static_cast<std::size_t>(crossing.which)];
      if (way.asked <= kFull) continue;
      for (const int other : way.owners)
        if (std::exchange(flows_[static_cast<std::size_t>(other)].seen, round_) != round_) together_.push_back(other);
    }
}

const std::vector<std::pair<int, double>>& Traffic::speeds() {
  ++round_;
  speeds_.clear();
  for (const int owner : touched_) {
    const Flow& flow = flows_[static_cast<std::size_t>(owner)];
    if (flow.kind < 0 || flow.seen == round_) continue;
    visit(owner);
    if (together_.size() == 1) {
      speeds_.emplace_back(owner, 1.0);
      continue;
    }
    std::sort(together_.begin(), together_.end(), [&](int a, int b) {
      return std::pair(flows_[static_cast<std::size_t>(a)].kind, a) < std::pair(flows_[static_cast<std::size_t>(b)].kind, b);
    });
    kinds_.clear();
    for (const int each : together_) kinds_.push_back(flows_[static_cast<std::size_t>(each)].kind);
    const std::vector<double>& found = alone_.speeds(kinds_);
    for (std::size_t i = 0; i < together_.size(); ++i) speeds_.emplace_back(together_[i], found[i]);
  }
  touched_.clear();
  return speeds_;
}

}  // namespace foreshard
