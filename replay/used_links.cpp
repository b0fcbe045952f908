#include "replay/used_links.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/base/error.h"

namespace foreshard::player {
namespace {

// Sums of capacities that are equal on paper may differ in the last bits.
constexpr double kRounding = 1 + 1e-13;

// The distinct links found before (or after) the entries of a link, as long as they are not wider together.
struct Side {
  double total = 0;
  std::int32_t latest = -1, more = -1;  // the one found last; the others, in a list
  bool open = true;                     // they imply the link so far
};
struct Link {
  double capacity = 0;
  Side before = {}, after = {};
};
struct Other {
  std::int32_t link = 0, next = -1;
};

class Neighbours {
 public:
  Neighbours(const UsedLinks& used, const Flows& flows) {
    links_.reserve(used.ids.size());
    for (const double capacity : used.capacity) links_.push_back({.capacity = capacity});
    for (int f = 0; f < flows.count(); ++f) {
      const auto begin = static_cast<std::size_t>(flows.first_link[static_cast<std::size_t>(f)]);
      const auto end = static_cast<std::size_t>(flows.first_link[static_cast<std::size_t>(f) + 1]);
      if (begin == end) continue;
      link(used.crossed[begin]).before.open = false;
      link(used.crossed[end - 1]).after.open = false;
      for (std::size_t k = begin + 1; k < end; ++k) {
        const std::int32_t one = used.crossed[k - 1], next = used.crossed[k];
        add(link(next).before, next, one);
        add(link(one).after, one, next);
      }
    }
  }
  bool limits(std::size_t l) const { return !links_[l].before.open && !links_[l].after.open; }

 private:
  Link& link(std::int32_t number) { return links_[static_cast<std::size_t>(number)]; }

  void add(Side& side, std::int32_t own, std::int32_t beside) {
    if (!side.open || side.latest == beside) return;
    for (std::int32_t n = side.more; n >= 0; n = others_[static_cast<std::size_t>(n)].next)
      if (std::int32_t& known = others_[static_cast<std::size_t>(n)].link; known == beside) {
        std::swap(known, side.latest);  // neighbours come in runs
        return;
      }
    const double capacity = link(own).capacity, width = link(beside).capacity;
    side.total += width;
    side.open = (width < capacity || (width == capacity && beside < own)) && side.total <= capacity * kRounding;
    if (side.latest >= 0) {
      others_.push_back({side.latest, side.more});
      side.more = static_cast<std::int32_t>(others_.size()) - 1;
    }
    side.latest = beside;
  }

  std::vector<Link> links_ = {};
  std::vector<Other> others_ = {};
};

}  // namespace

UsedLinks used_links(const Network& network, const Flows& flows) {
  UsedLinks used;
  std::vector<std::int32_t> dense(static_cast<std::size_t>(network.links()), -1);
  used.crossed.reserve(flows.all_links.size());
  for (const LinkId link : flows.all_links) {
    std::int32_t& number = dense[link.index()];
    if (number < 0) {
      number = used.count();
      const double bandwidth = network.link(link).bandwidth.value;
      if (!(std::isfinite(bandwidth) && bandwidth > 0))
        throw Error("cluster", "bandwidth of " + network.name(link), std::to_string(bandwidth) + " B/s", "above 0");
      used.ids.push_back(link);
      used.capacity.push_back(bandwidth);
    }
    used.crossed.push_back(number);
  }
  const Neighbours neighbours(used, flows);
  used.limits.reserve(used.ids.size());
  for (std::size_t l = 0; l < used.ids.size(); ++l) used.limits.push_back(neighbours.limits(l));
  return used;
}

}  // namespace foreshard::player
