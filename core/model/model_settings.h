// A model with some values of its file changed: what --set model.KEY=VALUE asks for.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/model/model.h"

namespace foreshard {

using Settings = std::vector<std::pair<std::string, std::string>>;  // path (core/json/json_edit.h) and value, in this order

// `name_or_path` as of load_model. A key that this kind of model does not read would change nothing: Error, with the nearest
// one that it reads. `where` names the input in the Error.
Model model_with(const std::string& name_or_path, const Settings& settings, const std::string& where);

}  // namespace foreshard
