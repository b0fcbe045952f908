#include "replay/used_links.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "core/base/error.h"

namespace foreshard::player {
namespace {

// Sums of capacities that are equal on paper may differ in the last bits.
constexpr double kRounding = 1 + 1e-13;

// The distinct links found before (or after) the entries of a link, until their sum exceeds its capacity. The struct is small, because
// every link of the cluster has two.
struct Side {
  double total = 0;                     // sum of their capacities; kWider: they can carry more than the link
  std::int32_t latest = -1, more = -1;  // the link found last; the others, in a list
};
struct Other {
  std::int32_t link = 0, next = -1;
};
constexpr double kWider = std::numeric_limits<double>::infinity();

class Neighbours {
 public:
  Neighbours(const UsedLinks& used, const Flows& flows) : capacity_(used.capacity), of_(used.ids.size()) {
    for (int f = 0; f < flows.count(); ++f) {
      const auto begin = static_cast<std::size_t>(flows.first_link[static_cast<std::size_t>(f)]);
      const auto end = static_cast<std::size_t>(flows.first_link[static_cast<std::size_t>(f) + 1]);
      if (begin == end) continue;
      of(used.crossed[begin]).before.total = kWider;
      of(used.crossed[end - 1]).after.total = kWider;
      for (std::size_t k = begin + 1; k < end; ++k) {
        const std::int32_t one = used.crossed[k - 1], next = used.crossed[k];
        add(of(next).before, next, one);
        add(of(one).after, one, next);
      }
    }
  }
  bool limits(std::size_t l) const { return of_[l].before.total == kWider && of_[l].after.total == kWider; }

 private:
  struct Sides {
    Side before = {}, after = {};
  };
  Sides& of(std::int32_t link) { return of_[static_cast<std::size_t>(link)]; }
  double capacity(std::int32_t link) const { return capacity_[static_cast<std::size_t>(link)]; }

  void add(Side& side, std::int32_t own, std::int32_t beside) {
    if (side.latest == beside || side.total == kWider) return;
    const double here = capacity(own), width = capacity(beside);
    if (width > here || (width == here && beside >= own)) {
      side.total = kWider;
      return;
    }
    for (std::int32_t n = side.more; n >= 0; n = others_[static_cast<std::size_t>(n)].next)
      if (std::int32_t& known = others_[static_cast<std::size_t>(n)].link; known == beside) {
        std::swap(known, side.latest);  // the same neighbour is likely to come next
        return;
      }
    side.total += width;
    if (side.total > here * kRounding) {
      side.total = kWider;
      return;
    }
    if (side.latest >= 0) {
      others_.push_back({side.latest, side.more});
      side.more = static_cast<std::int32_t>(others_.size()) - 1;
    }
    side.latest = beside;
  }

  const std::vector<double>& capacity_;
  std::vector<Sides> of_;
  std::vector<Other> others_ = {};
};

}  // namespace

UsedLinks used_links(const Network& network, const Flows& flows) {
  UsedLinks used;
  std::vector<std::int32_t> dense(static_cast<std::size_t>(network.links()), -1);
  used.crossed.reserve(flows.all_links.size());
  const std::size_t most = std::min(dense.size(), flows.all_links.size());
  used.ids.reserve(most), used.capacity.reserve(most);
  for (const LinkId link : flows.all_links) {
    std::int32_t& number = dense[link.index()];
    if (number < 0) {
      number = used.count();
      const double bandwidth = network.link(link).rate().value;
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
