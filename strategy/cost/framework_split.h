// How a framework distributes transformer layers over pipeline stages when the command line does not say.
#pragma once

#include <string>

#include "core/model/model.h"
#include "strategy/cost/framework_preset.h"

namespace foreshard {

// As text of --layer-split; empty: the same number for every stage, or no rule for a remainder.
std::string framework_split(const FrameworkPreset& preset, const Transformer& model, int stages);

}  // namespace foreshard
