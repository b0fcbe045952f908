#include "sim/simgrid_module.h"

#include "core/base/error.h"
#include "core/base/open_module.h"

namespace foreshard::sim {

static ModuleEntry module_entry(const std::string& operation, const std::string& advice = "") {
  static const auto entry = reinterpret_cast<ModuleEntry>(module_symbol(operation, "foreshard_simgrid", kModuleEntry, advice));
  return entry;
}

void open_simgrid(const std::string& operation, const std::string& advice) { module_entry(operation, advice); }

std::unique_ptr<player::Clock> new_simgrid_clock() {
  const char* why = "no reason";
  std::unique_ptr<player::Clock> clock(module_entry("simulate")(kModuleVersion, &why));
  if (!clock) throw Error(why);
  return clock;
}

}  // namespace foreshard::sim
