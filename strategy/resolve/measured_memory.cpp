#include "strategy/resolve/measured_memory.h"

#include "strategy/cost/framework_memory.h"
#include "strategy/resolve/resolve.h"

namespace foreshard {

Strategy with_measured_memory(const Model& model, const Cluster& cluster, Strategy resolved, const MachineProfile* profile) {
  if (resolved.device_memory.framework) return resolved;
  const std::optional<Bytes> outside = measured_outside(profile, cluster);
  if (!outside) return resolved;
  const auto graph = graph_of(model, resolved);
  const auto* operators = std::get_if<OpGraph>(&graph);
  const Bytes attention = operators ? attention_workspace(*operators, cluster, resolved) : Bytes{};
  resolved.device_memory.framework = *outside + attention;
  return resolved;
}

}  // namespace foreshard
