// Replaces the rest of sim/ in a build without SimGrid: every function throws.
#include "core/base/error.h"
#include "sim/simulate.h"

namespace foreshard {

void expect_simgrid(const std::string& call, const std::string& instead) {
  throw DeviceError(call, "this foreshard was built without SimGrid (cmake -DFORESHARD_SIMGRID=ON builds with it); " + instead);
}

Result simulate(const Plan& plan, const Cluster& cluster, const SimulateOptions& options, const Meanwhile& meanwhile) {
  return simulate(Plan(plan), cluster, options, meanwhile);
}

Result simulate(Plan&&, const Cluster&, const SimulateOptions&, const Meanwhile&) {
  throw DeviceError("simulate", "this foreshard was built without SimGrid");
}

}  // namespace foreshard
