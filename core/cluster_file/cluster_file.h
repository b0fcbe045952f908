// Finds cluster files by path or name, reads and checks them.
#pragma once

#include <string>

#include "core/cluster/cluster.h"

namespace foreshard {

// Reads a cluster. `name_or_path` is a shipped name or a file path, with or without "-xN" for N nodes ("dgx-a100-x128"). docs/clusters.md
// describes the format. A Network can be made from every cluster that it returns. Throws Error.
Cluster load_cluster(const std::string& name_or_path);
struct ClusterFile {
  std::string path = {};
  int nodes = 0;  // N of "-xN"; 0: as many as the file says
};
ClusterFile cluster_file(const std::string& name_or_path);  // the file that load_cluster reads; throws Error
// Reads the text of a cluster file with the checks of load_cluster; `file_name` names it in the Error.
Cluster parse_cluster(const std::string& text, const std::string& file_name);

}  // namespace foreshard
