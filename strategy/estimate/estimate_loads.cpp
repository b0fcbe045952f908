#include "strategy/estimate/estimate_loads.h"

#include <algorithm>

namespace foreshard {

namespace {

bool within(const LinkLoads::Link& a, const LinkLoads::Link& b) {
  constexpr double kSame = 1 + 1e-9;
  for (std::size_t flow = 0; flow < kFlows; ++flow)
    for (std::size_t kind = 0; kind < 3; ++kind)
      if (a.collectives[flow][kind] > b.collectives[flow][kind] * kSame) return false;
  return a.neighbours <= b.neighbours * kSame && a.wraps <= b.wraps * kSame;
}

}  // namespace

void LinkLoads::keep_fullest() {
  std::vector<Link> kept;
  for (const Link& link : links) {
    if (std::ranges::any_of(kept, [&](const Link& other) { return within(link, other); })) continue;
    std::erase_if(kept, [&](const Link& other) { return within(other, link); });
    kept.push_back(link);
  }
  links = std::move(kept);
}

double LinkLoads::busy(const FlowSeconds& collectives, double to_neighbours, double wrapping) const {
  double most = 0;
  for (const Link& link : links) {
    double seconds = link.neighbours * to_neighbours + link.wraps * wrapping;
    for (std::size_t flow = 0; flow < kFlows; ++flow)
      for (std::size_t kind = 0; kind < 3; ++kind) seconds += link.collectives[flow][kind] * collectives[flow][kind];
    most = std::max(most, seconds);
  }
  return most;
}

}  // namespace foreshard
