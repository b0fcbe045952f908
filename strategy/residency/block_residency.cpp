#include "strategy/residency/block_residency.h"

#include <algorithm>

namespace foreshard {

namespace {

// Consecutive uses of one unit in the same pass.
struct Visit {
  int unit = 0;
  bool forward = true;
  int first = 0, last = 0;  // moments
};

std::vector<Visit> visits_of(const std::vector<UnitUse>& uses) {
  std::vector<Visit> visits;
  for (int moment = 0; moment < static_cast<int>(uses.size()); ++moment) {
    const UnitUse& use = uses[static_cast<std::size_t>(moment)];
    const bool forward = use.phase == Phase::Forward;
    if (!visits.empty() && visits.back().unit == use.unit && visits.back().forward == forward)
      visits.back().last = moment;
    else
      visits.push_back({use.unit, forward, moment, moment});
  }
  return visits;
}

// The moment at which the gather for a visit is issued: the begin of the visit `ahead` visits before it, in the same pass, but not before
// the unit's last release.
int issue_moment(const std::vector<Visit>& visits, std::size_t v, int ahead) {
  std::size_t from = v;
  for (int i = 0; i < ahead && from > 0; ++i) {
    const Visit& before = visits[from - 1];
    if (before.forward != visits[v].forward || before.unit == visits[v].unit) break;
    --from;
  }
  return visits[from].first;
}

void add_gradient(Residency& residency, int issue, const Visit& visit, const std::vector<UnitUse>& uses,
                  FullGradient gradient) {
  int backward = visit.first;
  while (backward <= visit.last && uses[static_cast<std::size_t>(backward)].phase != Phase::Backward) ++backward;
  if (backward > visit.last || gradient == FullGradient::None) return;
  const int from = gradient == FullGradient::WithGather ? issue : backward;
  residency.buffers.push_back({visit.unit, UnitBuffer::Kind::Gradient, from, visit.last});
}

}  // namespace

Residency block_residency(const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses, const BlockRule& rule) {
  Residency residency;
  const std::vector<Visit> visits = visits_of(uses);
  std::vector<int> kept(units.size(), -1);          // [unit]: its stay, if it is kept; -1: it is not
  std::vector<char> was_backward(units.size(), 0);  // [unit]: whether its last visit was in a backward
  for (std::size_t v = 0; v < visits.size(); ++v) {
    const Visit& visit = visits[v];
    int& keeps = kept[static_cast<std::size_t>(visit.unit)];
    // That stay was for the micro-batch before.
    if (visit.forward && was_backward[static_cast<std::size_t>(visit.unit)]) keeps = -1;
    was_backward[static_cast<std::size_t>(visit.unit)] = !visit.forward;
    const int issue = issue_moment(visits, v, visit.forward ? rule.ahead_forward : rule.ahead_backward);
    if (keeps < 0) {
      residency.stays.push_back({visit.unit, issue, visit.first, visit.last});
      if (visit.forward && rule.staging_in_forward)
        residency.buffers.push_back({visit.unit, UnitBuffer::Kind::Staging, visit.first, visit.last});
      if (rule.keep_after_forward) keeps = static_cast<int>(residency.stays.size()) - 1;
    } else {
      residency.stays[static_cast<std::size_t>(keeps)].released_after = visit.last;
    }
    const bool last_of_step = v + 1 == visits.size();
    add_gradient(residency, issue, visit, uses, rule.gradient);
    if (!visit.forward && rule.reduction_in_flight && !last_of_step)
      residency.buffers.push_back({visit.unit, UnitBuffer::Kind::ReductionInput, visits[v + 1].first, visits[v + 1].last});
  }
  std::stable_sort(residency.stays.begin(), residency.stays.end(),
                   [](const Stay& a, const Stay& b) { return a.brought < b.brought; });
  return residency;
}

}  // namespace foreshard
