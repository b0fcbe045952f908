// Which strategies a training framework can run. A preset names the set of rules that holds for it (frameworks/*.json, "runs"). For a
// preset that names none a search does not restrict the space. Sources of the rules: docs/search-frameworks.md, "Frameworks".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "strategy/cost/framework_preset.h"
#include "strategy/estimate/estimate_screen.h"

namespace foreshard {

// The rules of the preset named `framework`. Empty: it names none.
std::optional<Runner> find_runner(const std::string& framework);

// The modules that torchtitan's selective checkpointing per operator recomputes: it keeps the attention and every second product.
const std::vector<std::string>& torchtitan_selective_modules();

// Why the framework cannot run `point`, whose other choices are those of `base`; null: it can. The text is a string literal.
const char* refused_by(Runner runner, const Point& point, const Strategy& base);
// The same for a whole strategy in which every choice is made. Empty: the framework can run it.
std::string why_not_run_by(Runner runner, const Strategy& strategy);

}  // namespace foreshard
