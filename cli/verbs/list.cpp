// foreshard list: lists the models, clusters, options and other names that the command line takes.
#include <algorithm>
#include <ostream>

#include "cli/program/table.h"
#include "cli/program/verb.h"
#include "core/base/data_path.h"
#include "core/cluster/cluster.h"
#include "core/cluster_file/cluster_file.h"
#include "core/graph/op_graph_layer_list.h"
#include "core/json/json.h"
#include "core/model/model.h"
#include "core/strategy/strategy_options.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/cost/runtime_policy.h"
#include "strategy/schedule/schedule.h"

namespace foreshard {

static Table list_models() {
  Table table{{"name", "family", "layers", "parameters"}, {}};
  for (const std::string& name : shipped("models")) {
    const Model model = load_model(name);
    std::string family = "layer list", layers;
    if (const auto* transformer = std::get_if<Transformer>(&model.shape)) {
      family = transformer->causal ? "decoder" : "encoder";
      layers = std::to_string(transformer->layers);
    } else {
      layers = std::to_string(chain_layers(std::get<LayerList>(model.shape)).size());
    }
    table.rows.push_back({name, family, layers, std::to_string(parameter_count(model))});
  }
  return table;
}

static Table list_topologies() {
  Table table{{"name", "nodes", "GPUs per node", "GPU", "NICs per node", "rails"}, {}};
  for (const std::string& name : shipped("topologies")) {
    const Cluster cluster = load_cluster(name);
    const NodeShape& shape = cluster.nodes.front().shape;
    table.rows.push_back({name, std::to_string(node_count(cluster)), std::to_string(shape.gpus), shape.gpu,
                          std::to_string(shape.nics), cluster.fabric.rail_optimised ? "yes" : "no"});
  }
  return table;
}

static Table list_schedules() {
  Table table{{"name", "virtual stages", "what"}, {}};
  for (const ScheduleEntry& entry : schedules())
    table.rows.push_back({entry.name,
                          entry.chunks == Chunks::One   ? "1"
                          : entry.chunks == Chunks::Two ? "2"
                          : entry.chunks == Chunks::Any ? "any"
                                                        : "2 or more",
                          entry.summary});
  return table;
}

static std::string type_name(OptionType type) {
  switch (type) {
    case OptionType::Integer: return "integer";
    case OptionType::Number: return "number";
    case OptionType::Text: return "text";
    case OptionType::Choice: return "choice";
    case OptionType::Flag: return "flag";
    case OptionType::Bytes: return "bytes";
    case OptionType::List: return "list";
  }
  return "";
}

static Table list_options() {
  const Strategy defaults;
  Table table{{"path", "flag", "default", "help"}, {}};
  for (const StrategyOption& option : strategy_options())
    table.rows.push_back({option.path, option.flag, option.get(defaults), option.help});
  return table;
}

// All properties of every option, for programs that build a GUI panel or a completion from them.
static std::string options_json() {
  const Strategy defaults;
  JsonWriter json;
  json.begin_array();
  for (const StrategyOption& option : strategy_options()) {
    json.begin_object();
    json.field("path", option.path).field("flag", option.flag).field("type", type_name(option.type));
    json.key("values").begin_line_array();
    for (const std::string& value : option.values) json.value(value);
    json.end_array();
    json.field("default", option.get(defaults)).field("unit", option.unit).field("help", option.help);
    json.field("constraint", option.constraint).field("group", option.group);
    json.end_object();
  }
  return json.end_array().text();
}

static Table list_policies() {
  Table table{{"name", "of", "zero", "what"}, {}};
  for (const RuntimePolicy& policy : runtime_policies()) {
    std::vector<std::string> frameworks;
    for (const std::string& name : framework_names())
      if (std::ranges::find(framework_preset(name).implies, policy.name) != framework_preset(name).implies.end())
        frameworks.push_back(name);
    table.rows.push_back({policy.name, policy.of, std::to_string(policy.zero),
                          policy.summary + (frameworks.empty() ? "" : "; implied by " + joined(frameworks))});
  }
  return table;
}

// The options that choose among named alternatives.
static Table list_choices() {
  const Strategy defaults;
  Table table{{"option", "default", "choices"}, {}};
  for (const StrategyOption& option : strategy_options())
    if (!option.values.empty() && option.type != OptionType::Flag && option.type != OptionType::Bytes &&
        option.type != OptionType::Number)
      table.rows.push_back({option.path, option.get(defaults), joined(option.values)});
  return table;
}

static Table list_frameworks() {
  Table table{{"name", "what"}, {}};
  for (const std::string& name : framework_names()) {
    const FrameworkPreset& preset = framework_preset(name);
    table.rows.push_back({name, preset.summary + (preset.implies.empty() ? "" : "; implies " + joined(preset.implies))});
  }
  return table;
}

static constexpr const char* kScheduleWords =
    "\np pipeline ranks, m micro-batches, v chunks per rank, r the number of a rank from 0; times of a micro-batch: F "
    "forward,\n"
    "B backward, I and W its input and its weight gradients\n";

struct Listing {
  const char* name = "";
  Table (*make)() = nullptr;
  const char* note = "";  // below the table
};
static constexpr Listing kListings[] = {
    {"models", list_models},   {"topologies", list_topologies}, {"schedules", list_schedules, kScheduleWords},
    {"options", list_options}, {"frameworks", list_frameworks}, {"policies", list_policies},
    {"choices", list_choices}};

static ExitCode run_list(const Arguments& arguments, const Console& console) {
  std::vector<std::string> names;
  for (const Listing& listing : kListings) names.emplace_back(listing.name);
  const std::string what = arguments.choice("WHAT", "", names);
  const bool json = arguments.flag("--json");
  if (json && what == "options") {
    console.out << options_json();
    return ExitCode::Ok;
  }
  for (const Listing& listing : kListings)
    if (what == listing.name) console.out << (json ? table_json(listing.make()) : table_text(listing.make()) + listing.note);
  return ExitCode::Ok;
}

Verb list_verb() {
  return {.name = "list",
          .summary = "Lists what can be named on the command line.",
          .examples = {"foreshard list models", "foreshard list options --json"},
          .options = {{.name = "WHAT",
                       .value = "WHAT",
                       .help = "models, topologies, schedules, options, frameworks, policies (of their runtimes) or choices "
                               "(options with named ones)",
                       .required = true},
                      {.name = "--json", .help = "print JSON"}},
          .run = run_list};
}

}  // namespace foreshard
