#include "cli/job/job.h"

#include <algorithm>
#include <ostream>

#include "cli/job/profile.h"
#include "core/base/count_text.h"
#include "core/base/error.h"
#include "core/base/printable.h"
#include "core/cluster_file/cluster_file.h"
#include "core/json/json.h"
#include "core/json/json_edit.h"
#include "core/model/model_settings.h"
#include "core/strategy/strategy_options.h"
#include "strategy/resolve/resolve.h"
#include "strategy/search/remedies.h"

namespace foreshard {

static std::string value_word(const StrategyOption& option) {
  switch (option.type) {
    case OptionType::Integer: return "N";
    case OptionType::Number: return "X";
    case OptionType::Text: return "TEXT";
    case OptionType::Choice: return joined(option.values, "|").size() <= 14 ? joined(option.values, "|") : "NAME";
    case OptionType::Flag: return "";
    case OptionType::Bytes: return "BYTES";
    case OptionType::List: return "LIST";
  }
  return "";
}

// "help; constraint: ... (choices; default)".
static std::string help_text(const StrategyOption& option, const Strategy& defaults) {
  std::string text = option.help;
  if (!option.constraint.empty()) text += "; constraint: " + option.constraint;
  std::string aside;
  if (value_word(option) == "NAME") aside = joined(option.values);
  const std::string standard = option.get(defaults);
  if (option.type != OptionType::Flag && !standard.empty()) aside += (aside.empty() ? "" : "; ") + ("default " + standard);
  return aside.empty() ? text : text + " (" + aside + ")";
}

std::vector<VerbOption> job_options() {
  std::vector<VerbOption> options = {
      {.name = "--model", .value = "NAME|FILE", .help = "a shipped model or a Hugging Face config.json", .required = true},
      {.name = "--cluster",
       .value = "NAME|FILE",
       .help = "a shipped cluster, with -xN for N nodes, or a cluster file",
       .required = true},
      {.name = "--gpus",
       .value = "N",
       .help = "use N GPUs of the cluster (default: all); of a cluster of one node as many nodes as they need"},
      {.name = "--nodes", .value = "N", .help = "the same cluster with N nodes"},
      {.name = "--strategy", .value = "FILE", .help = "a .strategy.json; options below win over it"},
      {.name = "--set",
       .value = "PATH=VALUE",
       .help = "sets a field of the model's or the cluster's file, or of the strategy: model.num_hidden_layers=24 (GPT-2: "
               "model.n_layer), cluster.fabric.oversubscription=2, strategy.zero=1; may be repeated",
       .repeatable = true},
      profile_option()};
  const Strategy defaults;
  for (const StrategyOption& option : strategy_options())
    if (!option.flag.empty())
      options.push_back(
          {.name = option.flag, .value = value_word(option), .help = help_text(option, defaults), .group = option.group});
  return options;
}

namespace {

struct Setting {  // --set noun.path=value
  std::string noun = {}, path = {}, value = {};
};

}  // namespace

static std::vector<Setting> read_settings(const Arguments& arguments) {
  static const std::vector<std::string> nouns = {"model", "cluster", "strategy"};
  std::vector<Setting> settings;
  for (const std::string& text : arguments.all("--set")) {
    const std::size_t equals = text.find('='), dot = text.find('.');
    if (equals == std::string::npos || dot == std::string::npos || dot > equals || dot + 1 == equals)
      throw Error(kCommandLine, "--set", "\"" + text + "\"", "PATH=VALUE, such as strategy.zero=1 or cluster.nodes=16");
    const Setting setting = {text.substr(0, dot), text.substr(dot + 1, equals - dot - 1), text.substr(equals + 1)};
    if (std::find(nouns.begin(), nouns.end(), setting.noun) == nouns.end())
      throw Error(kCommandLine, "--set", "\"" + text + "\"", "a path that begins with model., cluster. or strategy.");
    for (const Setting& other : settings)
      if (other.noun == setting.noun && other.path == setting.path)
        throw Error(kCommandLine, "--set", "\"" + text + "\"", "one value of " + setting.noun + "." + setting.path);
    settings.push_back(setting);
  }
  return settings;
}

// The text of a file, changed by the settings of one noun, whose paths are keys of the file.
static std::string with_settings(const std::string& path, const std::string& noun, const std::vector<Setting>& settings) {
  std::string text = read_file(path);
  for (const Setting& setting : settings)
    if (setting.noun == noun) text = with_json_value(text, setting.path, setting.value, kCommandLine);
  return text;
}

static bool sets(const std::vector<Setting>& settings, const std::string& noun) {
  return std::any_of(settings.begin(), settings.end(), [&](const Setting& s) { return s.noun == noun; });
}

static Model read_model(const std::string& name, const std::vector<Setting>& settings) {
  Settings of_model;
  for (const Setting& setting : settings)
    if (setting.noun == "model") of_model.emplace_back(setting.path, setting.value);
  return model_with(name, of_model, kCommandLine);
}

Model read_model_alone(const std::string& name, const Arguments& arguments) {
  const std::vector<Setting> settings = read_settings(arguments);
  for (const Setting& setting : settings)
    if (setting.noun != "model")
      throw Error(kCommandLine, "--set", "\"" + setting.noun + "." + setting.path + "\"", "a path that begins with model.");
  return read_model(name, settings);
}

static Cluster read_cluster(const Arguments& arguments, const std::vector<Setting>& settings) {
  const std::string name = arguments.text("--cluster");
  Cluster cluster = load_cluster(name);
  ClusterFile file = cluster_file(name);
  if (arguments.has("--nodes")) file.nodes = static_cast<int>(arguments.integer("--nodes", 1, 1, INT32_MAX));
  for (const Setting& setting : settings)
    if (setting.noun == "cluster" && setting.path == "nodes" && file.nodes > 0)
      throw Error(kCommandLine, "--set", "\"cluster.nodes=" + setting.value + "\"",
                  "no cluster.nodes beside the " + std::to_string(file.nodes) + " nodes of " +
                      (arguments.has("--nodes") ? "--nodes" : name));
  if (sets(settings, "cluster") || arguments.has("--nodes")) {
    cluster = parse_cluster(with_settings(file.path, "cluster", settings), file.path);
    if (file.nodes > 0) cluster = with_nodes(std::move(cluster), file.nodes);
  }
  return cluster;
}

// --gpus N: as many nodes as N GPUs need, and replicas to use exactly N, those that only serve included.
static void limit_gpus(const Arguments& arguments, Job& job) {
  const int all = gpu_count(job.cluster);
  if (!arguments.has("--gpus")) return;
  const std::int64_t wanted = arguments.integer("--gpus", all, 1, INT32_MAX);
  const int per_node = job.cluster.nodes.front().shape.gpus;
  if (arguments.has("--nodes") && ceil_div(wanted, per_node) != node_count(job.cluster) && job.cluster.nodes.size() == 1)
    throw Error(
        kCommandLine, "--gpus", std::to_string(wanted),
        "GPUs of " + counted(node_count(job.cluster), "node") + " (--nodes) with " + counted(per_node, "GPU") + " each");
  const bool fixed = node_count(job.cluster) > 1 || cluster_file(arguments.text("--cluster")).nodes > 0;
  if (fixed && wanted > all)
    throw Error(kCommandLine, "--gpus", std::to_string(wanted),
                "at most the " + counted(all, "GPU") + " of " + job.cluster.name + "; --nodes " +
                    std::to_string(ceil_div(wanted, per_node)) + " makes it larger");
  if (job.cluster.nodes.size() == 1 && (wanted > per_node || job.cluster.nodes.front().count > 1))
    job.cluster = with_nodes(std::move(job.cluster), static_cast<int>(ceil_div(wanted, per_node)));
  Strategy& s = job.strategy;
  if (!s.stages.empty()) {  // stages with degrees of their own fix the number of ranks
    std::int64_t ranks = 0;
    for (const StageDegrees& stage : s.stages) ranks += std::int64_t{1} * stage.dp * stage.tp;
    if (ranks != wanted)
      throw Error(kCommandLine, "--gpus", std::to_string(wanted), std::to_string(ranks) + " (those of the stages)");
    return;
  }
  const std::int64_t replica = std::int64_t{s.tp} * s.pp * s.cp, servers = serving_gpus(s), training = wanted - servers;
  const std::string and_servers = servers > 0 ? ", and " + counted(servers, "server") : "";
  if (training <= 0 || training % replica != 0 || (s.dp != 0 && s.dp * replica != training))
    throw Error(kCommandLine, "--gpus", std::to_string(wanted),
                s.dp != 0 ? std::to_string(s.dp * replica + servers) + " (dp x tp x cp x pp" + and_servers + ")"
                          : "a multiple of " + std::to_string(replica) + " (tp x cp x pp)" + and_servers);
  s.dp = static_cast<int>(training / replica);
}

Job read_job(const Arguments& arguments) {
  const std::vector<Setting> settings = read_settings(arguments);
  Job job;
  if (arguments.has("--strategy")) job.strategy = load_strategy(arguments.text("--strategy"));
  for (const StrategyOption& option : strategy_options())
    if (!option.flag.empty() && arguments.has(option.flag)) option.set(job.strategy, arguments.text(option.flag), kCommandLine);
  for (const Setting& setting : settings)
    if (setting.noun == "strategy")
      set_option(job.strategy, setting.path, setting.value, kCommandLine);
    else
      job.settings.push_back(setting.noun + "." + setting.path + "=" + setting.value);
  job.model = read_model(arguments.text("--model"), settings);
  job.cluster = read_cluster(arguments, settings);
  limit_gpus(arguments, job);
  job.profile = read_profile(job.cluster, arguments);
  if (job.profile) check_framework(*job.profile, job.strategy.framework, arguments.text("--profile"));
  return job;
}

Job read_job_of_a_plan(const Arguments& arguments) {
  Job job = read_job(arguments);
  job.strategy = with_common_degrees(std::move(job.strategy));
  return job;
}

std::vector<std::string> would_help(const Job& job) {
  std::vector<std::string> changes = remedies(job.model, job.cluster, job.strategy);
  if (changes.empty())
    changes.push_back("no one or two changes of this strategy make room; foreshard search --model " + job.model.name +
                      " --cluster " + job.cluster.name + " --global-batch " +
                      (job.strategy.batch.global > 0 ? std::to_string(job.strategy.batch.global) : "N") +
                      " looks at all strategies");
  return changes;
}

void complain(const Infeasible& infeasible, const Console& console) {
  console.err << "foreshard: " << printable_lines(infeasible.reason) << "\n";
  for (const std::string& change : infeasible.would_help) console.err << "  would help: " << printable_lines(change) << "\n";
}

ExitCode refuse(const Infeasible& infeasible, const Arguments& arguments, const Console& console) {
  if (arguments.flag("--json"))
    console.out << infeasible_json(infeasible);
  else
    complain(infeasible, console);
  return ExitCode::Infeasible;
}

std::string infeasible_json(const Infeasible& infeasible) {
  JsonWriter json;
  json.begin_object().field("feasible", false).field("infeasible_reason", infeasible.reason);
  json.key("would_help").begin_array();
  for (const std::string& change : infeasible.would_help) json.value(change);
  return json.end_array().end_object().text();
}

}  // namespace foreshard
