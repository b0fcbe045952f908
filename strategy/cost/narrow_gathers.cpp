#include "strategy/cost/narrow_gathers.h"

#include <algorithm>
#include <map>

#include "strategy/cost/plan_parts.h"
#include "strategy/kernels/op_cost.h"

namespace foreshard {

namespace {

bool gathers_sequence(const Plan& plan, const Role& role, const Instruction& run) {
  const auto* what = std::get_if<Collective>(&run.what);
  return what && what->kind == CollectiveKind::AllGather && lies_between_operators(plan, role, run) &&
         std::ranges::all_of(plan.groups[what->group.index()].over,
                             [&](AxisId axis) { return plan.axes[axis.index()].dense == DenseKind::Tensor; });
}

bool multiplies_codes(const Compute& what) { return is_matrix_product(what.op) && is_code(what.shapes.front().dtype); }
bool multiplies_codes(const Instruction& run) {
  const auto* what = std::get_if<Compute>(&run.what);
  return what && multiplies_codes(*what);
}

}  // namespace

std::vector<int> narrow_gathers(const Plan& plan, const Role& role, const Segment& segment) {
  const auto count = static_cast<int>(segment.instructions.size());
  const auto at = [&](int i) -> const Instruction& { return segment.instructions[static_cast<std::size_t>(i)]; };
  std::vector<int> source(segment.instructions.size(), -1);
  std::map<int, bool> narrow;  // of each gather: all readers so far are products of codes, and there are some
  std::map<BlockPlace, int> holds;
  for (int i = 0; i < count; ++i) {
    for (const Use& use : at(i).reads)
      if (const auto known = holds.find(place_of(use)); known != holds.end()) {
        const auto [entry, first] = narrow.try_emplace(known->second, true);
        entry->second = entry->second && multiplies_codes(at(i));
        source[static_cast<std::size_t>(i)] = known->second;
      }
    for (const Use& use : at(i).writes) holds.erase(place_of(use));
    if (!gathers_sequence(plan, role, at(i))) continue;
    holds[place_of(at(i).writes.front())] = i, source[static_cast<std::size_t>(i)] = i;
  }
  for (int& gather : source)
    if (const auto known = narrow.find(gather); known == narrow.end() || !known->second) gather = -1;
  return source;
}

Bytes further_casts(const Compute& what, bool maxima, int members) {
  if (!multiplies_codes(what) || what.phase == Phase::WeightGrad) return {};
  const std::vector<std::int64_t>& dims = what.shapes.front().dims;
  const bool forward = what.phase == Phase::Forward || what.phase == Phase::Recompute;
  const std::int64_t elements = dims[0] * dims[1] * (forward ? dims[3] : dims[2]), others = elements / members * (members - 1);
  // The largest number is found in any case, and each rank codes both layouts of its part.
  if (what.shapes.front().dtype == DType::F4)
    return {-static_cast<std::int64_t>(coding_bytes(DType::F4) * static_cast<double>(others))};
  const std::int64_t measured = maxima ? 2 : 0;
  return {measured * elements - (3 + measured) * others};
}

EightBitWeights::EightBitWeights(const Plan& plan, const Role& role) {
  std::set<std::int32_t> segments;
  for (const Action& action : role.actions) segments.insert(action.segment.value);
  for (const std::int32_t segment : segments)
    for (const Instruction& run : plan.segments[static_cast<std::size_t>(segment)].instructions) {
      const auto* what = std::get_if<Compute>(&run.what);
      if (!what || what->phase != Phase::Forward || what->shapes.empty() || what->shapes.front().dtype != DType::F8 ||
          !multiplies_codes(*what))
        continue;
      for (const Use& use : run.reads)
        if (use.length && role.buffers[use.buffer.index()].category == Category::Parameters)
          read_[use.buffer.value].insert({use.from.value, (use.from + *use.length).value});
    }
}

double EightBitWeights::share(const Role& role, const Use& gathered) const {
  const auto found = read_.find(gathered.buffer.value);
  const Bytes length = gathered.length.value_or(role.buffers[gathered.buffer.index()].bytes - gathered.from);
  if (found == read_.end() || length.value <= 0) return 0;
  const std::int64_t from = gathered.from.value, to = from + length.value;
  std::int64_t narrow = 0;
  for (const auto& [first, last] : found->second)
    narrow += std::max<std::int64_t>(0, std::min(last, to) - std::max(first, from));
  return static_cast<double>(narrow) / static_cast<double>(length.value);
}

double EightBitWeights::factor(const Role& role, const Instruction& run) const {
  const auto* what = std::get_if<Collective>(&run.what);
  const bool gathers = what && what->kind == CollectiveKind::AllGather && size_of(what->dtype).value == 2;
  return gathers && moves_state(role, run) ? 1 - share(role, run.writes.front()) / 2 : 1;
}

double code_share(const Segment& segment) {
  for (const Instruction& run : segment.instructions)
    if (const auto* what = std::get_if<Compute>(&run.what); what && multiplies_codes(*what))
      return coded_size(what->shapes.front().dtype) / 2;
  return 1;
}

}  // namespace foreshard
