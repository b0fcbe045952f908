// A cluster with some values of its file changed: what --set cluster.KEY=VALUE asks for.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/cluster/cluster.h"

namespace foreshard {

// `name_or_path` as of load_cluster; paths (core/json/json_edit.h) and values, in this order. `where` names the input in the Error.
Cluster cluster_with(const std::string& name_or_path, const std::vector<std::pair<std::string, std::string>>& settings,
                     const std::string& where);

// Of "cluster.fabric.oversubscription=2" and its like, as a plan's origin has them; those of another noun are left out.
std::vector<std::pair<std::string, std::string>> settings_of(const std::string& noun, const std::vector<std::string>& settings);

}  // namespace foreshard
