// Cluster files: found by path or name, read, and checked.
#pragma once

#include <string>

#include "core/cluster/cluster.h"

namespace foreshard {

// Reads a cluster: a file path or a shipped name, with or without "-xN" for N nodes ("dgx-a100-x128"). Throws Error. The
// format is docs/clusters.md; whatever it returns, a Network can be made of.
Cluster load_cluster(const std::string& name_or_path);
struct ClusterFile {
  std::string path = {};
  int nodes = 0;  // of "-xN"; 0: as the file says
};
ClusterFile cluster_file(const std::string& name_or_path);  // what load_cluster reads
Cluster parse_cluster(const std::string& text, const std::string& file_name);

}  // namespace foreshard
