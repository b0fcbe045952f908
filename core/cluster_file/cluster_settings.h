// A cluster with some values of its file changed: what --set cluster.KEY=VALUE asks for.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/cluster/cluster.h"

namespace foreshard {

// The cluster of `name_or_path` (as load_cluster takes it) with `settings` applied in their order. Each is a path (core/json/json_edit.h)
// and a value. Throws Error, in which `where` names the origin of the settings.
Cluster cluster_with(const std::string& name_or_path, const std::vector<std::pair<std::string, std::string>>& settings,
                     const std::string& where);

// Splits settings "NOUN.PATH=VALUE" ("cluster.fabric.oversubscription=2", as a plan's origin lists them) into pairs of path and value.
// Settings of another noun are left out.
std::vector<std::pair<std::string, std::string>> settings_of(const std::string& noun, const std::vector<std::string>& settings);

// Plan::origin with the cluster's own file ("cluster_file") in it, so that a saved plan or result has its cluster wherever it is opened; a
// shipped cluster is everywhere, and FILE-xN is left as it is.
std::string with_cluster_file(const std::string& origin, const std::string& name_or_path);
// The cluster of an origin, with its settings: from the file in it, or by its name. Throws Error; `where` names the origin.
Cluster cluster_of_origin(const std::string& origin, const std::string& where);

}  // namespace foreshard
