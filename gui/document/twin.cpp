#include "gui/document/twin.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/error.h"
#include "report/words/devices.h"
#include "report/words/span_words.h"

namespace foreshard {

double ErrorCell::error() const {
  if (predicted.value <= 0) return 0;
  return static_cast<double>((measured - predicted).value) / static_cast<double>(predicted.value);
}

namespace {

struct Ran {
  Nanoseconds begin = {}, end = {}, busy = {};
};

// [action]: what ran on the compute streams of the class.
std::map<std::int32_t, Ran> ran(const Document& document, ClassId who) {
  std::map<std::int32_t, Ran> actions;
  const Lane* lane = document.lanes.find(who, LaneKind::Compute);
  if (lane == nullptr) return actions;
  for (std::size_t i = 0; i < lane->size(); ++i) {
    const Span& span = document.trace().spans[static_cast<std::size_t>(lane->span[i])];
    const auto [at, fresh] = actions.emplace(span.action, Ran{span.begin, span.end, {}});
    at->second.end = std::max(at->second.end, span.end);
    at->second.busy += span.end - span.begin;
  }
  return actions;
}

ClassId class_with(const Trace& trace, RankId rank) {
  for (std::size_t c = 0; c < trace.classes.size(); ++c)
    if (std::ranges::find(trace.classes[c].members, rank) != trace.classes[c].members.end())
      return {static_cast<std::int32_t>(c)};
  return {};
}

}  // namespace

std::shared_ptr<const Twin> match_twin(const Document& predicted, std::shared_ptr<const Document> measured) {
  const std::string a = program_hash(predicted.plan()), b = program_hash(measured->plan());
  if (a != b) throw Error(measured->path, "plan", "program " + b, "program " + a + ", the one that was predicted");
  if (!same_device(predicted.result, measured->result)) return lay_beside(predicted, std::move(measured));
  auto twin = std::make_shared<Twin>();
  std::vector<double> errors;
  double sum_predicted = 0, sum_measured = 0;
  for (std::size_t c = 0; c < predicted.trace().classes.size(); ++c) {
    const std::vector<RankId>& members = predicted.trace().classes[c].members;
    const ClassId who = {static_cast<std::int32_t>(c)};
    twin->of_class.push_back(members.empty() ? ClassId{} : class_with(measured->trace(), members.front()));
    std::vector<ErrorCell>& cells = twin->cells.emplace_back();
    if (!twin->of_class.back().valid()) continue;
    const std::map<std::int32_t, Ran> there = ran(*measured, twin->of_class.back());
    for (const auto& [action, here] : ran(predicted, who)) {
      const auto match = there.find(action);
      if (match == there.end()) continue;
      cells.push_back({here.begin, here.end, here.busy, match->second.busy, action});
      errors.push_back(std::abs(cells.back().error()));
      sum_predicted += static_cast<double>(here.busy.value);
      sum_measured += static_cast<double>(match->second.busy.value);
    }
    std::ranges::sort(cells, {}, &ErrorCell::begin);
  }
  if (sum_predicted > 0) twin->bias = sum_measured / sum_predicted - 1;
  if (!errors.empty()) {
    const auto at = errors.begin() + static_cast<std::ptrdiff_t>(static_cast<double>(errors.size() - 1) * 0.95);
    std::nth_element(errors.begin(), at, errors.end());
    twin->p95 = *at;
  }
  twin->measured = std::move(measured);
  return twin;
}

std::shared_ptr<const Twin> lay_beside(const Document& document, std::shared_ptr<const Document> other) {
  auto twin = std::make_shared<Twin>();
  for (const RankClass& ranks : document.trace().classes) {
    const auto same = std::ranges::find(other->trace().classes, ranks.role, &RankClass::role);
    const auto at = static_cast<std::int32_t>(same - other->trace().classes.begin());
    twin->of_class.push_back(same == other->trace().classes.end() ? ClassId{} : ClassId{at});
    twin->cells.emplace_back();
  }
  twin->measured = std::move(other);
  return twin;
}

}  // namespace foreshard
