#include "core/check/plan_cluster.h"
#include "core/base/count_text.h"

#include <algorithm>
#include <vector>

namespace foreshard {

static std::string listed(const std::vector<std::string>& kinds) {
  std::string text;
  for (const std::string& kind : kinds) text += (text.empty() ? "" : " and ") + kind;
  return text;
}

static void add_once(std::vector<std::string>& kinds, const std::string& kind) {
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) kinds.push_back(kind);
}

// At most `most` + 1: a plan that is not sound may have axes of any size.
static std::int64_t ranks_of(const Plan& plan, std::int64_t most) {
  std::int64_t all = 0;
  for (const Role& role : plan.roles) {
    std::int64_t ranks = 1;
    for (const AxisId axis : role.axes)
      if (axis.valid() && axis.index() < plan.axes.size())
        ranks = std::min<std::int64_t>(ranks, most + 1) * std::max(1, plan.axes[axis.index()].size);
    all = std::min(all + ranks, most + 1);
  }
  return all;
}

std::string gpus_differ(const Plan& plan, const Cluster& cluster) {
  std::vector<std::string> wanted, there;
  for (const Role& role : plan.roles) add_once(wanted, role.device_kind);
  for (const NodeGroup& group : cluster.nodes) add_once(there, group.shape.gpu);
  const std::string has = ", cluster " + cluster.name + " has ";
  for (const std::string& kind : wanted)
    if (std::find(there.begin(), there.end(), kind) == there.end())
      return "plan is for " + listed(wanted) + has + listed(there);
  const std::int64_t gpus = gpu_count(cluster);
  if (plan.placement.explicit_devices.empty() && ranks_of(plan, 1 << 30) > gpus)  // several ranks may share a device otherwise
    return "plan is for " + counted(ranks_of(plan, 1 << 30), "GPU") + has + std::to_string(gpus);
  return "";
}

}  // namespace foreshard
