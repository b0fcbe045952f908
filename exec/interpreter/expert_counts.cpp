#include "exec/interpreter/expert_counts.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/base/error.h"
#include "exec/arithmetic/host_convert.h"

namespace foreshard {

double ExpertCounts::choices() const {
  double sum = 0;
  for (const std::vector<double>& router : loads) sum = std::accumulate(router.begin(), router.end(), sum);
  return sum;
}

void ExpertCounts::add(const ExpertCounts& other) {
  placed += other.placed;
  loads.resize(std::max(loads.size(), other.loads.size()));
  for (std::size_t r = 0; r < other.loads.size(); ++r) {
    loads[r].resize(std::max(loads[r].size(), other.loads[r].size()));
    for (std::size_t e = 0; e < other.loads[r].size(); ++e) loads[r][e] += other.loads[r][e];
  }
}

MostLoaded most_loaded_of(const ExpertCounts& counts) {
  MostLoaded most{.factor = 0};
  for (std::size_t r = 0; r < counts.loads.size(); ++r) {
    const std::vector<double>& loads = counts.loads[r];
    const double sum = std::accumulate(loads.begin(), loads.end(), 0.0);
    if (sum <= 0) continue;
    const double factor = *std::ranges::max_element(loads) * static_cast<double>(loads.size()) / sum;
    if (factor > most.factor) most = {r, factor};
  }
  return most;
}

namespace {

RouterName name_of_router(const Role& role, const Instruction& instruction) {
  RouterName name{.part = instruction.name.substr(0, instruction.name.size() - std::strlen("route"))};
  if (instruction.layer.valid()) name.layer = role.layers[instruction.layer.index()];
  return name;
}

bool is_forward_of(const Instruction& instruction, std::size_t alternative) {
  const auto* what = std::get_if<Compute>(&instruction.what);
  return what && what->phase == Phase::Forward && what->op.index() == alternative;
}
const std::size_t kRoute = Operation(ops::Route{}).index(), kDispatch = Operation(ops::Dispatch{}).index();

// "layers.2" before "layers.10", and the head after all layers.
bool comes_before(const RouterName& a, const RouterName& b) {
  const bool layer_a = a.layer.starts_with("layers."), layer_b = b.layer.starts_with("layers.");
  if (layer_a != layer_b) return layer_a;
  if (a.layer.size() != b.layer.size()) return a.layer.size() < b.layer.size();
  return a.layer != b.layer ? a.layer < b.layer : a.part < b.part;
}

}  // namespace

std::vector<RouterName> routers_of(const Plan& plan) {
  std::vector<RouterName> routers;
  for (const Role& role : plan.roles)
    for (const Action& action : role.actions)
      for (const Instruction& instruction : plan.segments[action.segment.index()].instructions) {
        if (!is_forward_of(instruction, kRoute)) continue;
        RouterName name = name_of_router(role, instruction);
        if (std::ranges::find(routers, name) == routers.end()) routers.push_back(std::move(name));
      }
  std::ranges::sort(routers, comes_before);
  return routers;
}

ExpertCounting counting_of(const std::vector<RouterName>& routers, const Role& role, const Instruction& instruction,
                           std::span<const Operand> writes, int part) {
  ExpertCounting counting;
  if (is_forward_of(instruction, kRoute) && writes.size() >= 3) {
    const auto found = std::ranges::find(routers, name_of_router(role, instruction));
    FS_ASSERT(found != routers.end());
    counting.router = static_cast<int>(found - routers.begin());
    counting.numbers = writes[2];
    counting.numbers.elements = std::get<Compute>(instruction.what).shapes.at(0).dims.at(1);
  } else if (is_forward_of(instruction, kDispatch) && writes.size() >= 3) {
    const auto& what = std::get<Compute>(instruction.what);
    const auto& op = std::get<ops::Dispatch>(what.op);
    if (op.sources > 1 && part > 0) return counting;
    const std::int64_t experts = what.shapes.at(0).dims.at(3), ranks = what.shapes.at(1).dims.at(0);
    counting.numbers = writes[2];
    counting.numbers.elements = op.sources > 1 ? op.sources * (experts / ranks) : experts;
  }
  return counting;
}

void ExpertCounting::add_to(ExpertCounts& counts, const Operand& numbers_on_host, std::size_t routers) const {
  counts.loads.resize(routers);
  if (router < 0) {
    const std::span rows(reinterpret_cast<const std::int64_t*>(numbers_on_host.data),
                         static_cast<std::size_t>(numbers_on_host.elements));
    counts.placed += static_cast<double>(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}));
    return;
  }
  std::vector<double> here(static_cast<std::size_t>(numbers_on_host.elements));
  host::load(numbers_on_host, 0, numbers_on_host.elements, here.data());
  std::vector<double>& all = counts.loads[static_cast<std::size_t>(router)];
  all.resize(here.size());
  for (std::size_t e = 0; e < here.size(); ++e) all[e] += here[e];
}

std::string packed(const ExpertCounts& counts) {
  std::string bytes;
  const auto put = [&](double number) { bytes.append(reinterpret_cast<const char*>(&number), sizeof number); };
  put(counts.placed);
  for (const std::vector<double>& router : counts.loads) {
    put(static_cast<double>(router.size()));
    for (const double load : router) put(load);
  }
  return bytes;
}

ExpertCounts counts_of(const std::string& bytes, std::size_t routers) {
  constexpr double kMostExperts = 1e6;
  std::size_t at = 0;
  const auto next = [&] {
    double number = 0;
    if (bytes.size() - at < sizeof number)
      throw DeviceError("the run", "counts of experts of another process that end too early");
    std::memcpy(&number, bytes.data() + at, sizeof number);
    at += sizeof number;
    return number;
  };
  ExpertCounts counts{.placed = next()};
  while (at < bytes.size()) {
    const double experts = next();
    if (!(experts >= 0 && experts <= kMostExperts) || counts.loads.size() == routers)
      throw DeviceError("the run", "counts of experts of another process that are none");
    counts.loads.emplace_back();
    for (double e = 0; e < experts; ++e) counts.loads.back().push_back(next());
  }
  return counts;
}

}  // namespace foreshard
