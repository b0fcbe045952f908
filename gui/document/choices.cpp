#include "gui/document/choices.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "core/base/error.h"
#include "core/cluster_file/cluster_file.h"
#include "core/json/json_edit.h"
#include "core/model/model_settings.h"
#include "core/strategy/strategy_options.h"

namespace foreshard {

Choices worked_example() {
  return {.model = "gpt3-175b",
          .cluster = "dgx-a100",
          .nodes = 128,
          .strategy = {{"tp", "8"}, {"pp", "16"}, {"dp", "8"}, {"global_batch", "1536"}}};
}

Choices with_model(Choices choices, const std::string& model) {
  if (choices.model != model)
    std::erase_if(choices.settings, [](const std::string& setting) { return setting.starts_with("model."); });
  choices.model = model;
  return choices;
}

std::string unknown_name(const Choices& choices) {
  try {
    model_file(choices.model);
  } catch (const Error&) {
    return "model";
  }
  try {
    cluster_file(choices.cluster);
  } catch (const Error&) {
    return "cluster";
  }
  return {};
}

std::vector<std::string> job_words(const Choices& choices, const std::vector<std::string>& leave_out) {
  std::vector<std::string> words = {"--model", choices.model, "--cluster", choices.cluster};
  if (choices.nodes > 0) words.insert(words.end(), {"--nodes", std::to_string(choices.nodes)});
  for (const auto& [path, value] : choices.strategy)
    if (std::find(leave_out.begin(), leave_out.end(), path) == leave_out.end())
      words.insert(words.end(), {"--set", "strategy." + path + "=" + value});
  for (const std::string& setting : choices.settings) words.insert(words.end(), {"--set", setting});
  return words;
}

static std::string quoted(const std::string& word) {
  const bool plain = std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("-_./,:=+").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain && !word.empty()) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string command_line(const std::string& verb, const Choices& choices) {
  std::string line = "foreshard " + verb + " --model " + quoted(choices.model) + " --cluster " + quoted(choices.cluster);
  if (choices.nodes > 0) line += " --nodes " + std::to_string(choices.nodes);
  for (const auto& [path, value] : choices.strategy) {
    const StrategyOption* option = find_option(path);
    if (option == nullptr || option->flag.empty() || (option->type == OptionType::Flag && value != "true"))
      line += " --set " + quoted("strategy." + path + "=" + value);
    else
      line += " " + option->flag + (option->type == OptionType::Flag ? "" : " " + quoted(value));
  }
  for (const std::string& setting : choices.settings) line += " --set " + quoted(setting);
  return line;
}

std::string complaint_about(const std::string& path, const std::string& value) {
  const StrategyOption* option = find_option(path);
  if (option == nullptr) return {};
  try {
    Strategy scratch;
    option->set(scratch, value, "");
  } catch (const Error& error) {
    const std::string text = error.what();  // ": tp: found "x", expected a whole number"
    const std::size_t found = text.find("found ");
    return found == std::string::npos ? text : text.substr(found);
  }
  return {};
}

// The settings that begin with `noun`, as pairs of path and value: for "model", "model.n_layer=24" gives ("n_layer", "24").
static std::vector<std::pair<std::string, std::string>> settings_of(const Choices& choices, const std::string& noun) {
  std::vector<std::pair<std::string, std::string>> found;
  for (const std::string& setting : choices.settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos)
      throw Error("strategy panel", "more settings", "\"" + setting + "\"",
                  "PATH=VALUE, such as cluster.fabric.oversubscription=2");
    if (setting.starts_with(noun + "."))
      found.emplace_back(setting.substr(noun.size() + 1, equals - noun.size() - 1), setting.substr(equals + 1));
  }
  return found;
}

static std::string edited_file(const std::string& path, const std::vector<std::pair<std::string, std::string>>& settings) {
  std::string text = read_file(path);
  JsonReader::parse(text, path);  // says where it is no JSON
  for (const auto& [field, value] : settings) text = with_json_value(text, field, value, "strategy panel");
  return text;
}

Model model_of(const Choices& choices) { return model_with(choices.model, settings_of(choices, "model"), "strategy panel"); }

Cluster cluster_of(const Choices& choices) {
  const auto settings = settings_of(choices, "cluster");
  const ClusterFile file = cluster_file(choices.cluster);
  const int nodes = choices.nodes > 0 ? choices.nodes : file.nodes;
  Cluster cluster = parse_cluster(edited_file(file.path, settings), file.path);
  return nodes > 0 ? with_nodes(std::move(cluster), nodes) : cluster;
}

Strategy strategy_of(const Choices& choices) {
  Strategy strategy;
  for (const auto& [path, value] : choices.strategy) set_option(strategy, path, value, "strategy panel");
  for (const auto& [path, value] : settings_of(choices, "strategy")) set_option(strategy, path, value, "strategy panel");
  return strategy;
}

std::map<std::string, std::string> chosen_in(const Strategy& strategy) {
  const Strategy defaults;
  std::map<std::string, std::string> chosen;
  for (const StrategyOption& option : strategy_options())
    if (const std::string value = option.get(strategy); value != option.get(defaults)) chosen[option.path] = value;
  return chosen;
}

// Lower case, "_" and "-" as blanks, a blank on either side: words are found as " word ".
static std::string spoken(const std::string& text) {
  std::string out = " ";
  for (const unsigned char c : text) out += std::isalnum(c) != 0 ? static_cast<char>(std::tolower(c)) : ' ';
  return out + " ";
}

std::string option_meant(const std::string& reason, const std::string& last_edited, const std::vector<std::string>& paths) {
  const std::string text = spoken(reason);
  std::string meant;
  std::size_t first = std::string::npos;
  for (const std::string& path : paths) {
    const std::size_t at = text.find(spoken(path));
    if (at == std::string::npos) continue;
    if (path == last_edited) return path;
    if (at < first) first = at, meant = path;
  }
  return meant;
}

bool apply_remedy(Choices& choices, const std::string& remedy) {
  Choices changed = choices;
  std::istringstream words(remedy.substr(0, remedy.find(": ")));
  const StrategyOption* option = nullptr;
  bool any = false;
  for (std::string word; words >> word;) {
    if (word.starts_with("--")) {
      const auto& all = strategy_options();
      const auto found = std::find_if(all.begin(), all.end(), [&](const StrategyOption& o) { return o.flag == word; });
      if (found == all.end()) return false;
      option = &*found;
      if (option->type == OptionType::Flag) changed.strategy[option->path] = "true", any = true;
      if (option->path == "tp" || option->path == "pp") changed.strategy.erase("dp");  // the replicas give way
    } else {
      if (option == nullptr || !complaint_about(option->path, word).empty()) return false;
      changed.strategy[option->path] = word;
      any = true;
    }
  }
  if (any) choices = std::move(changed);
  return any;
}

void write_choices(JsonWriter& json, const Choices& choices) {
  json.begin_object().field("model", choices.model).field("cluster", choices.cluster).field("nodes", choices.nodes);
  json.key("strategy").begin_object();
  for (const auto& [path, value] : choices.strategy) json.field(path, value);
  json.end_object().key("settings").begin_array();
  for (const std::string& setting : choices.settings) json.value(setting);
  json.end_array().end_object();
}

Choices read_choices(const JsonReader& json) {
  json.only({"model", "cluster", "nodes", "strategy", "settings"});
  Choices choices{.model = json.at("model").as_string(), .cluster = json.at("cluster").as_string()};
  choices.nodes = static_cast<int>(json.at("nodes").as_int(0, 10'000'000));
  for (const auto& [path, value] : json.at("strategy").members()) choices.strategy[path] = value.as_string();
  for (const JsonReader& setting : json.at("settings").elements()) choices.settings.push_back(setting.as_string());
  return choices;
}

}  // namespace foreshard
