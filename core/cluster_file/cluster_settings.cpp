#include "core/cluster_file/cluster_settings.h"

#include "core/base/data_path.h"
#include "core/cluster_file/cluster_file.h"
#include "core/json/json.h"
#include "core/json/json_edit.h"

namespace foreshard {

Cluster cluster_with(const std::string& name_or_path, const std::vector<std::pair<std::string, std::string>>& settings,
                     const std::string& where) {
  Cluster as_it_is = load_cluster(name_or_path);  // an error of the file itself is reported without the settings
  if (settings.empty()) return as_it_is;
  const ClusterFile file = cluster_file(name_or_path);
  std::string text = read_file(file.path);
  for (const auto& [path, value] : settings) text = with_json_value(text, path, value, where);
  Cluster cluster = parse_cluster(text, file.path);
  return file.nodes > 0 ? with_nodes(std::move(cluster), file.nodes) : cluster;
}

std::vector<std::pair<std::string, std::string>> settings_of(const std::string& noun,
                                                             const std::vector<std::string>& settings) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const std::string& setting : settings)
    if (const std::size_t equals = setting.find('='); equals != std::string::npos && setting.starts_with(noun + "."))
      found.emplace_back(setting.substr(noun.size() + 1, equals - noun.size() - 1), setting.substr(equals + 1));
  return found;
}

std::string with_cluster_file(const std::string& origin, const std::string& name_or_path) {
  const ClusterFile file = cluster_file(name_or_path);
  if (file.nodes > 0 || file.path.starts_with(data_directory() + "/topologies/")) return origin;
  return with_json_value(origin.empty() ? "{}" : origin, "cluster_file", read_file(file.path), "origin");
}

Cluster cluster_of_origin(const std::string& origin, const std::string& where) {
  const JsonReader json = JsonReader::parse(origin.empty() ? "{}" : origin, where);
  std::vector<std::string> settings;
  if (const auto all = json.find("settings"))
    for (const JsonReader& setting : all->elements()) settings.push_back(setting.as_string());
  const auto changes = settings_of("cluster", settings);
  const std::string name = json.at("cluster").as_string();
  const auto own = json.find("cluster_file");
  if (!own) return cluster_with(name, changes, where);
  std::string text = own->is_string() ? own->as_string() : json_value(origin, "cluster_file", where);  // a text with comments
  for (const auto& [path, value] : changes) text = with_json_value(text, path, value, where);
  return parse_cluster(text, where + ": cluster_file/" + name + ".json");  // the file's name is that of the cluster
}

}  // namespace foreshard
