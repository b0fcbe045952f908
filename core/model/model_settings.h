// A model with some values of its file changed: what --set model.KEY=VALUE asks for.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/model/model.h"

namespace foreshard {

using Settings = std::vector<std::pair<std::string, std::string>>;  // pairs of a path (core/json/json_edit.h) and a value

// The model of `name_or_path` (as load_model takes it) with `settings` applied in their order. A key that this kind of model does not read
// throws Error, which suggests the nearest key that it reads; `where` names the origin of the settings.
Model model_with(const std::string& name_or_path, const Settings& settings, const std::string& where);

}  // namespace foreshard
