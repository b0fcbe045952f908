#include "exec/interpreter/memory_limit.h"

#include <unistd.h>

#include <algorithm>

#include "core/base/count_text.h"
#include "core/plan/ranks.h"
#include "core/result/memory_timeline.h"

namespace foreshard {

// The message is like that of `lower` for a device that is too small. The limit has no reserve, unlike a device.
std::optional<Infeasible> exceeds_limit(const Plan& plan, Bytes limit) {
  Bytes worst = {};
  std::string reason;
  for (const Role& role : plan.roles) {
    const Bytes arena = arena_bytes(role, Space::Device);
    const Bytes excess = arena + plan.framework - limit;
    if (excess <= worst) continue;
    worst = excess;
    reason = role.name + " needs " + in_size(arena) + " for the model and " + in_size(plan.framework) +
             " for the framework; the limit is " + in_size(limit) + ": " + in_size(excess) + " too much";
  }
  if (reason.empty()) return {};
  return Infeasible{.reason = reason, .would_help = {"a larger --memory-limit", "a plan that needs less memory"}};
}

std::optional<Infeasible> exceeds_machine(const Plan& plan) {
  const Bytes machine{static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE)};
  const Ranks ranks(plan);
  double total = 0;
  for (std::size_t r = 0; r < plan.roles.size(); ++r)
    for (const Space space : {Space::Device, Space::PinnedHost, Space::PageableHost})
      total += static_cast<double>(arena_bytes(plan.roles[r], space).value) * ranks.count(RoleId{static_cast<std::int32_t>(r)});
  if (total <= static_cast<double>(machine.value)) return {};
  return Infeasible{.reason = "the arenas of all " + counted(ranks.count(), "rank") + " together need " +
                              in_size({static_cast<std::int64_t>(std::min(total, 9e18))}) + "; this machine has " +
                              in_size(machine),
                    .would_help = {"a smaller model or batch", "fewer ranks"}};
}

}  // namespace foreshard
