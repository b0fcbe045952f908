#include "strategy/residency/residency.h"

#include <algorithm>

#include "core/base/error.h"

namespace foreshard {

std::vector<UnitUse> step_order(int units, const std::vector<UnitRange>& recomputed) {
  std::vector<UnitUse> uses;
  for (int unit = 0; unit < units; ++unit) uses.push_back({unit, Phase::Forward});
  auto range = recomputed.rbegin();
  for (int unit = units - 1; unit >= 0; --unit) {
    while (range != recomputed.rend() && range->first > unit) ++range;
    if (range != recomputed.rend() && range->last == unit)
      for (int again = range->first; again <= range->last; ++again) uses.push_back({again, Phase::Recompute});
    uses.push_back({unit, Phase::Backward});
  }
  return uses;
}

namespace {

std::int64_t elements_of(const std::vector<ParameterUnit>& units, int unit) {
  return units[static_cast<std::size_t>(unit)].elements;
}

// Adds `amount` to those of the moments from .. until that are inside the step.
void add(ElementCurve& curve, int from, int until, std::int64_t amount) {
  const int last = std::min(until, static_cast<int>(curve.size()) - 1);
  for (int moment = std::max(from, 0); moment <= last; ++moment) curve[static_cast<std::size_t>(moment)] += amount;
}

std::string said(const std::vector<ParameterUnit>& units, int unit, const std::string& what) {
  return units[static_cast<std::size_t>(unit)].name + ": " + what;
}

// The stays of each unit, in order.
std::vector<std::vector<Stay>> stays_by_unit(const std::vector<ParameterUnit>& units, const Residency& residency) {
  std::vector<std::vector<Stay>> result(units.size());
  for (const Stay& stay : residency.stays) result[static_cast<std::size_t>(stay.unit)].push_back(stay);
  return result;
}

// The first fault of the stays of one unit, which is used at `moments`; "": none.
std::string fault_of_unit(const std::vector<Stay>& stays, const std::vector<int>& moments, int step) {
  int free_from = Stay::kBeforeStep;
  std::size_t covered = 0;
  for (const Stay& stay : stays) {
    if (stay.brought < free_from) return "two stays overlap";
    if (stay.first_use < stay.brought || stay.released_after < stay.first_use || stay.released_after > step)
      return "a stay ends before it begins";
    const auto first = std::lower_bound(moments.begin(), moments.end(), stay.brought);
    if (first == moments.end() || *first != stay.first_use) return "a stay's first use is none";
    free_from = stay.released_after + 1;
    covered += static_cast<std::size_t>(std::upper_bound(first, moments.end(), stay.released_after) - first);
  }
  return covered == moments.size() ? "" : "used while it is not there";
}

}  // namespace

ElementCurve resident_elements(const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses,
                               const Residency& residency) {
  ElementCurve curve(uses.size(), 0);
  for (const Stay& stay : residency.stays) add(curve, stay.brought, stay.released_after, elements_of(units, stay.unit));
  return curve;
}

std::int64_t peak_elements(const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses,
                           const Residency& residency) {
  const ElementCurve curve = resident_elements(units, uses, residency);
  return curve.empty() ? 0 : *std::max_element(curve.begin(), curve.end());
}

std::int64_t brought_elements(const std::vector<ParameterUnit>& units, const Residency& residency) {
  std::int64_t total = 0;
  for (const Stay& stay : residency.stays)
    if (stay.brought != Stay::kBeforeStep) total += elements_of(units, stay.unit);
  return total;
}

std::vector<Bytes> resident_bytes(const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses,
                                  const Residency& residency, const ElementBytes& element) {
  ElementCurve curve(uses.size(), 0);
  for (const Stay& stay : residency.stays)
    add(curve, stay.brought, stay.released_after, elements_of(units, stay.unit) * element.parameter);
  const auto bytes_of = [&](UnitBuffer::Kind kind) {
    switch (kind) {
      case UnitBuffer::Kind::Staging: return element.parameter;
      case UnitBuffer::Kind::Gradient: return element.gradient;
      case UnitBuffer::Kind::ReductionInput: return element.reduction_input;
    }
    FS_ASSERT(false);
  };
  for (const UnitBuffer& buffer : residency.buffers)
    add(curve, buffer.from, buffer.until, elements_of(units, buffer.unit) * bytes_of(buffer.kind));
  std::vector<Bytes> bytes;
  for (const std::int64_t value : curve) bytes.push_back({value});
  return bytes;
}

Bytes peak_bytes(const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses, const Residency& residency,
                 const ElementBytes& element) {
  const std::vector<Bytes> curve = resident_bytes(units, uses, residency, element);
  return curve.empty() ? Bytes{} : *std::max_element(curve.begin(), curve.end());
}

std::vector<int> stays_of_uses(const std::vector<UnitUse>& uses, const Residency& residency) {
  std::vector<int> result(uses.size(), -1);
  for (std::size_t s = 0; s < residency.stays.size(); ++s) {
    const Stay& stay = residency.stays[s];
    for (int moment = stay.first_use; moment <= stay.released_after && moment < static_cast<int>(uses.size()); ++moment)
      if (uses[static_cast<std::size_t>(moment)].unit == stay.unit)
        result[static_cast<std::size_t>(moment)] = static_cast<int>(s);
  }
  return result;
}

std::string residency_fault(const std::vector<ParameterUnit>& units, const std::vector<UnitUse>& uses,
                            const Residency& residency) {
  const int step = static_cast<int>(uses.size()), count = static_cast<int>(units.size());
  const auto unknown = [&](int unit) { return unit < 0 || unit >= count; };
  int issued = Stay::kBeforeStep;
  for (const Stay& stay : residency.stays) {
    if (unknown(stay.unit)) return "a stay of no unit";
    if (stay.brought < issued) return said(units, stay.unit, "its transfer is not in order");
    issued = stay.brought;
  }
  for (const UnitBuffer& buffer : residency.buffers)
    if (unknown(buffer.unit) || buffer.from < 0 || buffer.until < buffer.from || buffer.until > step)
      return "a buffer outside of the step";
  std::vector<char> persistent(units.size(), 0);
  for (const int unit : residency.persistent) {
    if (unknown(unit)) return "a persistent unit that is none";
    persistent[static_cast<std::size_t>(unit)] = 1;
  }
  std::vector<std::vector<int>> moments(units.size());
  for (int moment = 0; moment < step; ++moment)
    moments[static_cast<std::size_t>(uses[static_cast<std::size_t>(moment)].unit)].push_back(moment);
  const std::vector<std::vector<Stay>> stays = stays_by_unit(units, residency);
  for (int unit = 0; unit < count; ++unit) {
    const auto u = static_cast<std::size_t>(unit);
    if (persistent[u] && !stays[u].empty()) return said(units, unit, "persistent, and has a stay");
    if (persistent[u]) continue;
    const std::string fault = fault_of_unit(stays[u], moments[u], step);
    if (!fault.empty()) return said(units, unit, fault);
  }
  return "";
}

}  // namespace foreshard
