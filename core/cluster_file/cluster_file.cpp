#include "core/cluster_file/cluster_file.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "core/base/data_path.h"
#include "core/base/error.h"
#include "core/json/json.h"
#include "core/network/network.h"

namespace foreshard {

// "dgx-a100-x128" -> 128, and `before` becomes "dgx-a100". 0 without such an ending.
static int nodes_in(const std::string& name, std::string& before) {
  const std::size_t at = name.rfind("-x");
  int nodes = 0;
  if (at == std::string::npos || at == 0) return 0;
  const char* end = name.data() + name.size();
  const auto [stop, problem] = std::from_chars(name.data() + at + 2, end, nodes);
  if (problem != std::errc() || stop != end || nodes < 1) return 0;
  before = name.substr(0, at);
  return nodes;
}

Cluster parse_cluster(const std::string& text, const std::string& file_name) {
  Cluster cluster = read_cluster(text, file_name);
  Cluster named = cluster;
  named.name = file_name;  // so that an Error of Network begins with it
  const Network check(named);
  return cluster;
}

ClusterFile cluster_file(const std::string& name) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const std::vector<std::string> known = shipped("topologies");
  const auto file_of = [&](const std::string& text) -> std::string {
    if (std::find(known.begin(), known.end(), text) != known.end()) return data_directory() + "/topologies/" + text + ".json";
    return fs::is_regular_file(text, ignored) ? text : "";
  };
  if (const std::string path = file_of(name); !path.empty()) return {path, 0};
  std::string before = name;
  if (const int nodes = nodes_in(name, before); nodes > 0)
    if (const std::string path = file_of(before); !path.empty()) return {path, nodes};
  const std::string near = nearest_name(before, known);
  throw Error(
      "cluster", "", "'" + name + "'",
      "a file, or the name of a shipped cluster with or without -xN" + (near.empty() ? "" : ", perhaps '" + near + "'"));
}

Cluster load_cluster(const std::string& name) {
  const auto [path, nodes] = cluster_file(name);
  Cluster cluster = parse_cluster(read_file(path), path);
  return nodes > 0 ? with_nodes(std::move(cluster), nodes) : cluster;
}

}  // namespace foreshard
