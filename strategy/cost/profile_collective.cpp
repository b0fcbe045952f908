#include "strategy/cost/profile_collective.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/network/network.h"

namespace foreshard {

namespace {

using Curve = std::vector<const CollectiveMeasure*>;  // of one group, by size

std::vector<MeasuredLink> classes_of(const GroupPlace& place) {
  if (place.nodes > 1) return {MeasuredLink::Network};
  return {place.link == LinkKind::NvLink ? MeasuredLink::NvLink : MeasuredLink::Pcie, MeasuredLink::Node,
          MeasuredLink::Process};
}

std::vector<MeasuredAlgorithm> algorithms_of(Algorithm algorithm) {
  using enum MeasuredAlgorithm;
  if (algorithm == Algorithm::Ring) return {Ring, Automatic, Direct};
  if (algorithm == Algorithm::Tree || algorithm == Algorithm::DoubleTree) return {Tree, Automatic, Direct};
  if (algorithm == Algorithm::NvlinkSharp) return {Nvls, Automatic, Direct};
  return {Automatic, Direct};  // none that libraries have
}

// By number of ranks, from the groups whose ranks per node are nearest to those wanted.
std::map<int, Curve> curves_of(const MachineProfile& profile, const Collective& what, const GroupPlace& place) {
  for (const MeasuredLink link : classes_of(place))
    for (const MeasuredAlgorithm algorithm : algorithms_of(what.algorithm)) {
      std::vector<const CollectiveMeasure*> alike;
      double least = INFINITY;
      const auto distance = [&](const CollectiveMeasure& at) {
        if (link != MeasuredLink::Network) return 0.0;
        return std::abs(std::log(static_cast<double>(at.ranks) / at.nodes * place.nodes / place.ranks));
      };
      for (const CollectiveMeasure& at : profile.collectives)
        if (at.kind == what.kind && at.algorithm == algorithm && at.link == link) {
          alike.push_back(&at);
          least = std::min(least, distance(at));
        }
      std::map<int, Curve> curves;
      for (const CollectiveMeasure* at : alike)
        if (distance(*at) <= least + 1e-9) curves[at->ranks].push_back(at);
      if (!curves.empty()) return curves;
    }
  return {};
}

double bytes_of(const CollectiveMeasure& at) { return static_cast<double>(at.bytes.value); }

double slope(const CollectiveMeasure& a, const CollectiveMeasure& b) {
  return (b.time.value - a.time.value) / (bytes_of(b) - bytes_of(a));
}

MeasuredTime at_size(const Curve& curve, double bytes) {
  const CollectiveMeasure &first = *curve.front(), &last = *curve.back();
  if (curve.size() == 1) return {.wire = last.time * (bytes / bytes_of(last))};
  std::size_t upper = 1;
  while (upper + 1 < curve.size() && bytes_of(*curve[upper]) < bytes) ++upper;
  const CollectiveMeasure &low = *curve[upper - 1], &high = *curve[upper];
  const bool beyond = bytes > bytes_of(last);
  const CollectiveMeasure& from = beyond ? high : low;
  double steep = slope(low, high);
  double time = from.time.value + steep * (bytes - bytes_of(from));
  // Outside the samples the slope is limited, so that noise of small sizes is not extrapolated.
  if (beyond || bytes < bytes_of(first)) {
    steep = std::clamp(beyond ? std::max(steep, slope(first, last)) : steep, 0.0, from.time.value / bytes_of(from));
    time = from.time.value + steep * (bytes - bytes_of(from));
  }
  const double wire = std::clamp(steep * bytes, 0.0, time);
  return {.latency = {time - wire}, .wire = {wire}};
}

// Per step and per byte of a ring.
struct Normal {
  double step = 0, byte = 0;
};

}  // namespace

std::optional<MeasuredTime> profiled_collective(const MachineProfile& profile, const Collective& what,
                                                const GroupPlace& place) {
  const std::map<int, Curve> curves = curves_of(profile, what, place);
  if (curves.empty() || what.bytes.value <= 0 || place.ranks < 2) return {};
  const double bytes = static_cast<double>(what.bytes.value);
  if (const auto exact = curves.find(place.ranks); exact != curves.end()) return at_size(exact->second, bytes);
  const auto volume = [&](int ranks) { return collective_volume(what.kind, Algorithm::Ring, what.bytes, ranks); };
  const auto normal = [&](const std::pair<const int, Curve>& measured) {
    const MeasuredTime time = at_size(measured.second, bytes);
    return Normal{time.latency.value / volume(measured.first).steps, time.wire.value / volume(measured.first).bytes};
  };
  const auto above = curves.upper_bound(place.ranks);
  Normal mixed = normal(above == curves.end() ? *std::prev(above) : *above);
  if (above != curves.end() && above != curves.begin()) {
    const auto& below = *std::prev(above);
    const Normal other = normal(below);
    const double share =
        std::log(static_cast<double>(place.ranks) / below.first) / std::log(static_cast<double>(above->first) / below.first);
    mixed = {other.step + share * (mixed.step - other.step), other.byte + share * (mixed.byte - other.byte)};
  }
  return MeasuredTime{.latency = {mixed.step * volume(place.ranks).steps}, .wire = {mixed.byte * volume(place.ranks).bytes}};
}

std::optional<FittedLink> profiled_link(const MachineProfile& profile, const GroupPlace& place) {
  for (const MeasuredLink link : classes_of(place))
    if (const auto fit = fitted_link(profile.collectives, link)) return fit;
  return {};
}

}  // namespace foreshard
