#include "replay/max_min.h"

#include <algorithm>

#include "core/base/error.h"

namespace foreshard::player {

std::span<const double> MaxMin::share(std::span<const double> capacity, std::span<const std::span<const LinkShare>> flows) {
  links_.clear(), named_.clear(), flow_of_.clear(), next_.clear(), heap_.clear();
  if (number_.size() < capacity.size()) number_.resize(capacity.size(), -1);
  for (std::size_t f = 0; f < flows.size(); ++f) {
    FS_ASSERT(!flows[f].empty());
    for (const LinkShare& crossing : flows[f]) {
      int& number = number_[static_cast<std::size_t>(crossing.link)];
      if (number < 0) {
        number = static_cast<int>(links_.size());
        links_.push_back({.left = capacity[static_cast<std::size_t>(crossing.link)]});
        named_.push_back(crossing.link);
      }
      Link& link = links_[static_cast<std::size_t>(number)];
      link.weight += crossing.weight;
      ++link.growing;
      flow_of_.push_back(static_cast<int>(f));
      next_.push_back(link.first);
      link.first = static_cast<int>(flow_of_.size()) - 1;
    }
  }
  for (std::size_t l = 0; l < links_.size(); ++l) heap_.push_back({links_[l].left / links_[l].weight, static_cast<int>(l)});
  std::make_heap(heap_.begin(), heap_.end());
  rates_.assign(flows.size(), -1);
  double level = 0;  // the rate that every growing flow has reached
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate least = heap_.back();
    const Link& link = links_[static_cast<std::size_t>(least.link)];
    heap_.pop_back();
    if (link.growing == 0) continue;
    const double rate = std::max(level, link.left / link.weight);
    if (rate > least.rate) {
      heap_.push_back({rate, least.link});
      std::push_heap(heap_.begin(), heap_.end());
    } else {
      fill(flows, least.link, rate);
      level = rate;
    }
  }
  for (const int link : named_) number_[static_cast<std::size_t>(link)] = -1;
  return rates_;
}

// Fixes the rate of all flows that still grow on the link `full`.
void MaxMin::fill(std::span<const std::span<const LinkShare>> flows, int full, double rate) {
  for (int c = links_[static_cast<std::size_t>(full)].first; c >= 0; c = next_[static_cast<std::size_t>(c)]) {
    const auto f = static_cast<std::size_t>(flow_of_[static_cast<std::size_t>(c)]);
    if (rates_[f] >= 0) continue;
    rates_[f] = rate;
    for (const LinkShare& crossing : flows[f]) {
      Link& link = links_[static_cast<std::size_t>(number_[static_cast<std::size_t>(crossing.link)])];
      link.left = std::max(0.0, link.left - rate * crossing.weight);
      link.weight -= crossing.weight;
      --link.growing;
    }
  }
}

}  // namespace foreshard::player
