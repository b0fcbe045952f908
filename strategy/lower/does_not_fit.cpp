#include <cstdio>

#include "core/result/memory_timeline.h"
#include "strategy/lower/lower.h"

namespace foreshard {

namespace {

std::string gib(Bytes bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f GiB", in_gib(bytes));
  return text;
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
    rest -= bytes;
    if (bytes.value > 0) text += std::string(part.name) + " " + gib(bytes) + ", ";
  }
  return text + "scratch " + gib(rest);
}

}  // namespace

std::optional<Infeasible> does_not_fit(const Plan& plan, const Cluster& cluster) {
  const Role* worst = nullptr;
  Bytes worst_excess = {};
  for (const Role& role : plan.roles) {
    const Bytes capacity = gpu_of(cluster, role.device_kind).memory;
    const Bytes excess = arena_bytes(role, Space::Device) + plan.framework + plan.reserve - capacity;
    if (excess > worst_excess) worst = &role, worst_excess = excess;
  }
  if (!worst) return {};
  const Bytes arena = arena_bytes(*worst, Space::Device);
  return Infeasible{.reason = worst->name + " needs " + gib(arena) + " (" + parts(*worst, arena) + ") and " +
                              gib(plan.framework) + " for the framework; " + worst->device_kind + " has " +
                              gib(gpu_of(cluster, worst->device_kind).memory) + ", of which " + gib(plan.reserve) +
                              " stay free: " + gib(worst_excess) + " too much"};
}

}  // namespace foreshard
