#include "strategy/cost/narrow_gathers.h"

#include <algorithm>
#include <cmath>
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

// Rows for experts are gathered by their dispatcher, which knows nothing of codes (docs/cost-model.md, `fp8_gathers`).
bool gathers_codes_for(const Instruction& run) {
  return multiplies_codes(run) && !is<ops::GroupedMatMul>(std::get<Compute>(run.what).op);
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
        entry->second = entry->second && gathers_codes_for(at(i));
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

std::vector<bool> coded_norms(const Segment& segment, const std::vector<int>& gathers) {
  const std::size_t count = segment.instructions.size();
  std::vector<int> norm_of(count, -1);  // whose result the instruction reads
  std::map<int, bool> coded;            // of each norm: all readers so far are products of codes, and there are some
  std::map<BlockPlace, int> holds;      // the norm whose result a block holds
  for (std::size_t i = 0; i < count; ++i) {
    const Instruction& run = segment.instructions[i];
    const auto* what = std::get_if<Compute>(&run.what);
    const bool gathers_codes = std::holds_alternative<Collective>(run.what) && gathers[i] == static_cast<int>(i);
    const bool multiplies = what && multiplies_codes(*what) && what->shapes.front().dtype == DType::F8;
    for (const Use& use : run.reads)
      if (const auto known = holds.find(place_of(use)); known != holds.end()) {
        norm_of[i] = known->second;
        if (gathers_codes) continue;
        const auto [entry, first] = coded.try_emplace(known->second, true);
        entry->second = entry->second && multiplies;
      }
    for (const Use& use : run.writes) holds.erase(place_of(use));
    const bool norms = what && is<ops::Norm>(what->op) && (what->phase == Phase::Forward || what->phase == Phase::Recompute);
    if (norms) norm_of[i] = static_cast<int>(i);
    if (norms || (gathers_codes && norm_of[i] >= 0)) holds[place_of(run.writes.front())] = norm_of[i];
  }
  std::vector<bool> writes_codes(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto known = coded.find(norm_of[i]);
    writes_codes[i] =
        known != coded.end() && known->second && !std::holds_alternative<Collective>(segment.instructions[i].what);
  }
  return writes_codes;
}

static bool scales_blocks(const EightBits& rules, const MachineConstants& machine) {
  return rules.blocks && machine.codes.blocks;
}

double product_speed(const EightBits& rules, const MachineConstants& machine) {
  return scales_blocks(rules, machine) ? machine.codes.block_products : 1;
}

// Bytes of codes that a cast writes for each element, without a transposed copy that is made later.
static double cast_codes(const EightBits& rules, const MachineConstants& machine) {
  constexpr double kScales = 1.0 / 32;
  return scales_blocks(rules, machine) ? 2 * (1 + kScales) : 1;  // rows and columns have scales of their own
}

// Bytes of the casts of a product whose operands have scales of rows. The forward casts input and weights by rows (read 2, write 1). The
// product that makes the gradient of the input needs casts of the gradient of the result and of the weights; the one that makes the
// gradient of the weights needs a cast of the input by columns. Gradients are scaled behind their products (read 2, write 2).
static double row_casts(const Compute& what, const RowScales& rows) {
  constexpr double kByRows = 3, kScaled = 4;
  const std::vector<std::int64_t>& dims = what.shapes.front().dims;
  const auto inputs = static_cast<double>(dims[0] * dims[1] * dims[3]),
             results = static_cast<double>(dims[0] * dims[1] * dims[2]),
             weights = static_cast<double>(dims[0] * dims[2] * dims[3]);
  if (what.phase == Phase::WeightGrad) return (rows.input - kByRows - kScaled) * inputs + kScaled * weights;
  if (what.phase == Phase::Forward || what.phase == Phase::Recompute) return kByRows * (inputs + weights);
  return rows.gradient * results + kScaled * inputs + (rows.weight - kByRows - kScaled) * weights;
}

Bytes further_casts(const Compute& what, const EightBits& rules, const MachineConstants& machine, const OperandCast& cast) {
  if (what.shapes.empty()) return {};
  const std::vector<std::int64_t>& dims = what.shapes.front().dims;
  const double codes = cast_codes(rules, machine);
  if (cast.coded && is<ops::Norm>(what.op))
    return {static_cast<std::int64_t>((codes - 2) * static_cast<double>(dims[0] * dims[1]))};
  if (!multiplies_codes(what)) return {};
  const bool rows = rules.rows.input > 0;
  if (what.phase == Phase::WeightGrad) return {rows ? std::llround(row_casts(what, rules.rows)) : 0};
  const bool forward = what.phase == Phase::Forward || what.phase == Phase::Recompute;
  const auto elements = static_cast<double>(dims[0] * dims[1] * (forward ? dims[3] : dims[2]));
  const double own = elements / cast.members;
  const DType code = what.shapes.front().dtype;
  const double counted = coding_bytes(code) * elements;
  if (code == DType::F4)  // the largest number is found in any case, and each rank codes both layouts of its part
    return {static_cast<std::int64_t>((coding_bytes(code) * own - counted) / machine.codes.fp4_casts)};
  if (rows) return {std::llround(row_casts(what, rules.rows) - counted)};
  if (scales_blocks(rules, machine)) {
    const double bytes = cast.coded ? 0 : (2 + codes) * own / machine.codes.block_casts;
    return {static_cast<std::int64_t>(bytes - counted)};
  }
  const bool fused = rules.fused_copies && cast.members == 1 && !cast.coded;
  const double copy = rules.fused_copies && machine.codes.any_layout ? 0 : fused ? 1 : 2;
  const double largest = rules.maxima ? 2 / machine.codes.maxima : 0;
  const double bytes = cast.coded ? 0 : (2 + codes + largest) * own;
  return {static_cast<std::int64_t>(bytes + copy * elements - counted)};
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

void NarrowState::begin(const Plan& plan, const Role& role, const Segment& segment, const EightBits& rules) {
  share = code_share(segment);
  const bool codes = share < 1;
  gathers_ = codes && rules.gathers ? narrow_gathers(plan, role, segment) : std::vector<int>(segment.instructions.size(), -1);
  norms_ = codes && rules.norms ? coded_norms(segment, gathers_) : std::vector<bool>(segment.instructions.size());
}

void NarrowState::next(const Segment& segment, std::size_t instruction) {
  const int from = gathers_[instruction];
  gather = from < 0 ? nullptr : &std::get<Collective>(segment.instructions[static_cast<std::size_t>(from)].what);
  coded = norms_[instruction];
}

double code_share(const Segment& segment) {
  for (const Instruction& run : segment.instructions)
    if (const auto* what = std::get_if<Compute>(&run.what); what && multiplies_codes(*what))
      return coded_size(what->shapes.front().dtype) / 2;
  return 1;
}

}  // namespace foreshard
