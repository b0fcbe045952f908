// What training frameworks can run. A preset names the rules that hold for it (frameworks/*.json, "runs"); of one without, nothing is
// known, and a search does not restrict the space. Sources of the rules: docs/search-frameworks.md, "Frameworks".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "strategy/cost/framework_preset.h"
#include "strategy/estimate/estimate_screen.h"

namespace foreshard {

// By the name of a preset. Empty: nothing is known.
std::optional<Runner> find_runner(const std::string& framework);

// What torchtitan's selective checkpointing per operator redoes: it keeps the attention and every second product.
const std::vector<std::string>& torchtitan_selective_modules();

// Why it cannot run a point of a search whose other choices are those of `base`: words that live as long as the program. Null: it can.
const char* refused_by(Runner runner, const Point& point, const Strategy& base);
// The same of a strategy with nothing left open, whoever found it. Empty: it can run it.
std::string why_not_run_by(Runner runner, const Strategy& strategy);

}  // namespace foreshard
