#include "sim/used_links.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"

namespace foreshard::sim {
namespace {

// Sums of capacities that are equal on paper may differ in the last bits.
constexpr double kRounding = 1 + 1e-13;

// The distinct links found beside the entries of each link, as long as they are not wider together.
class Neighbours {
 public:
  explicit Neighbours(const UsedLinks& used)
      : used_(used), total_(used.ids.size(), 0), first_(used.ids.size(), -1), open_(used.ids.size(), true) {}

  void none(std::int32_t link) { open_[static_cast<std::size_t>(link)] = false; }
  void add(std::int32_t link, std::int32_t beside) {
    const auto l = static_cast<std::size_t>(link);
    if (!open_[l]) return;
    for (std::int32_t n = first_[l]; n >= 0; n = list_[static_cast<std::size_t>(n)].next)
      if (list_[static_cast<std::size_t>(n)].link == beside) return;
    const double width = used_.capacity[static_cast<std::size_t>(beside)];
    const bool first = width < used_.capacity[l] || (width == used_.capacity[l] && beside < link);
    total_[l] += width;
    open_[l] = first && total_[l] <= used_.capacity[l] * kRounding;
    list_.push_back({beside, first_[l]});
    first_[l] = static_cast<std::int32_t>(list_.size()) - 1;
  }
  bool imply(std::size_t link) const { return open_[link]; }

 private:
  struct Node {
    std::int32_t link = 0, next = -1;
  };
  const UsedLinks& used_;
  std::vector<double> total_;
  std::vector<std::int32_t> first_;
  std::vector<char> open_;
  std::vector<Node> list_ = {};
};

std::vector<char> limiting(const UsedLinks& used, const Flows& flows) {
  Neighbours before(used), after(used);
  for (int f = 0; f < flows.count(); ++f) {
    const auto begin = static_cast<std::size_t>(flows.first_link[static_cast<std::size_t>(f)]);
    const auto end = static_cast<std::size_t>(flows.first_link[static_cast<std::size_t>(f) + 1]);
    if (begin == end) continue;
    before.none(used.crossed[begin]);
    after.none(used.crossed[end - 1]);
    for (std::size_t k = begin + 1; k < end; ++k) {
      before.add(used.crossed[k], used.crossed[k - 1]);
      after.add(used.crossed[k - 1], used.crossed[k]);
    }
  }
  std::vector<char> limits;
  for (std::size_t l = 0; l < used.ids.size(); ++l) limits.push_back(!before.imply(l) && !after.imply(l));
  return limits;
}

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
  used.limits = limiting(used, flows);
  return used;
}

}  // namespace foreshard::sim
