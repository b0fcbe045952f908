#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>
#include <vector>

#include "core/network/network.h"
#include "core/plan/ranks.h"
#include "core/result/memory_timeline.h"
#include "core/result/order_bound.h"
#include "strategy/lower/lower.h"

namespace foreshard {

namespace {

std::string gib(Bytes bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB", in_gib(bytes));
  return text;
}

// The bytes of the arena that blocks of this category lie in.
Bytes covered(const Role& role, Category category) {
  std::vector<std::pair<Bytes, Bytes>> ranges;
  for (const Buffer& buffer : role.buffers)
    if (buffer.category == category && buffer.space == Space::Device)
      for (const Bytes offset : buffer.offsets) ranges.emplace_back(offset, offset + buffer.bytes);
  std::ranges::sort(ranges);
  Bytes sum = {}, top = {};
  for (const auto& [begin, end] : ranges) {
    sum += std::max(Bytes{}, end - std::max(begin, top));
    top = std::max(top, end);
  }
  return sum;
}

// "parameters 4.07 GiB, gradients 4.07 GiB, ..., scratch 0.61 GiB": what the arena of a role is made of.
std::string parts(const Role& role, Bytes arena) {
  struct Part {
    const char* name;
    Category category;
  };
  std::string text;
  Bytes rest = arena;
  for (const Part& part : {Part{"parameters", Category::Parameters}, Part{"gradients", Category::Gradients},
                           Part{"optimizer", Category::Optimizer}, Part{"activations", Category::Activations},
                           Part{"communication", Category::Communication}}) {
    Bytes bytes = {};
    for (const Buffer& buffer : role.buffers)
      if (buffer.category == part.category && buffer.space == Space::Device)
        bytes += buffer.bytes * static_cast<std::int64_t>(buffer.offsets.size());
    if (bytes > arena) bytes = covered(role, part.category);  // every use has a slot of its own (own_slots.h)
    rest -= bytes;
    if (bytes.value > 0) text += std::string(part.name) + " " + gib(bytes) + ", ";
  }
  // Places that are not full at the same time share bytes.
  return rest.value < 0 ? text + "less " + gib(Bytes{} - rest) + " that they share" : text + "scratch " + gib(rest);
}

Bytes host_bytes(const Role& role) { return arena_bytes(role, Space::PinnedHost) + arena_bytes(role, Space::PageableHost); }
Bytes drive_bytes(const Role& role) { return arena_bytes(role, Space::Nvme); }

Bytes excess_of(const Role& role, Bytes arena, const Plan& plan, const Cluster& cluster) {
  return arena + plan.framework + plan.reserve - gpu_of(cluster, role.device_kind).memory;
}

}  // namespace

// The ranks of a node share its memory and its drives. A cluster that does not say how much host memory there is has enough.
std::optional<Infeasible> host_does_not_fit(const Plan& plan, const Cluster& cluster) {
  const auto away = [](const Role& role) { return host_bytes(role) + drive_bytes(role); };
  if (std::ranges::all_of(plan.roles, [&](const Role& role) { return away(role) == Bytes{}; })) return {};
  struct Need {
    Bytes host = {}, drives = {};
  };
  const Network network(cluster);
  const Ranks ranks(plan);
  std::map<int, Need> of_node;
  for (std::int32_t rank = 0; rank < ranks.count(); ++rank) {
    const Role& role = plan.roles[ranks.role({rank}).index()];
    Need& need = of_node[network.node(ranks.device({rank}))];
    need.host += host_bytes(role), need.drives += drive_bytes(role);
  }
  for (const auto& [node, need] : of_node) {
    const NodeShape& shape = network.node_shape(node);
    if (shape.host_memory > Bytes{} && need.host > shape.host_memory)
      return Infeasible{.reason = "the ranks of node " + std::to_string(node) + " need " + gib(need.host) +
                                  " of host memory; it has " + gib(shape.host_memory)};
    if (need.drives > shape.nvme)
      return Infeasible{.reason = "the ranks of node " + std::to_string(node) + " need " + gib(need.drives) +
                                  " of its NVMe drives; it has " + gib(shape.nvme)};
  }
  return {};
}

bool never_fits(const Plan& plan, const Cluster& cluster) {
  for (std::size_t r = 0; r < plan.roles.size(); ++r)
    if (excess_of(plan.roles[r], issue_order_peak(plan, {static_cast<std::int32_t>(r)}), plan, cluster) > Bytes{}) return true;
  return false;
}

std::optional<Infeasible> does_not_fit(const Plan& plan, const Cluster& cluster) {
  const Role* worst = nullptr;
  Bytes worst_excess = {};
  for (const Role& role : plan.roles) {
    const Bytes excess = excess_of(role, arena_bytes(role, Space::Device), plan, cluster);
    if (excess > worst_excess) worst = &role, worst_excess = excess;
  }
  if (!worst) return host_does_not_fit(plan, cluster);
  const Bytes arena = arena_bytes(*worst, Space::Device);
  return Infeasible{.reason = worst->name + " needs " + gib(arena) + " (" + parts(*worst, arena) + ") and " +
                              gib(plan.framework) + " for the framework; " + worst->device_kind + " has " +
                              gib(gpu_of(cluster, worst->device_kind).memory) + ", of which " + gib(plan.reserve) +
                              " stay free: " + gib(worst_excess) + " too much"};
}

}  // namespace foreshard
