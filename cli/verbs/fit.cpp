// foreshard fit: the largest model that can be trained on a cluster, at increasing levels of offload to host memory and drives.
#include "strategy/fit/fit.h"

#include <algorithm>
#include <cstdio>
#include <ostream>

#include "cli/program/interrupt.h"
#include "cli/program/progress.h"
#include "cli/program/shell_words.h"
#include "cli/program/table.h"
#include "core/base/error.h"
#include "core/cluster_file/cluster_settings.h"
#include "core/json/json.h"
#include "report/words/text_table.h"
#include "strategy/cost/runtime_policy.h"

namespace foreshard {

namespace {

constexpr double kSecondsPerDay = 86'400;

Cluster read_cluster(const Arguments& arguments) {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const auto& [option, path] : {std::pair{"--host-memory", "host_memory"}, {"--nvme", "nvme.capacity"}})
    if (arguments.has(option)) settings.emplace_back(path, arguments.text(option));
  Cluster cluster = cluster_with(arguments.text("--cluster"), settings, kCommandLine);
  if (!arguments.has("--gpus")) return cluster;
  const int all = gpu_count(cluster), per_node = cluster.nodes.front().shape.gpus;
  const std::int64_t wanted = arguments.integer("--gpus", all, 1, INT32_MAX);
  if (wanted > all && (cluster.nodes.size() > 1 || node_count(cluster) > 1))
    throw Error(kCommandLine, "--gpus", std::to_string(wanted), "at most the " + counted(all, "GPU") + " of " + cluster.name);
  return wanted > all ? with_nodes(std::move(cluster), static_cast<int>(ceil_div(wanted, per_node))) : cluster;
}

std::string billions(std::int64_t parameters) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f B", static_cast<double>(parameters) / 1e9);
  return text;
}

std::string shape_of(const Model& model) {
  const auto& t = std::get<Transformer>(model.shape);
  return std::to_string(t.layers) + " x " + std::to_string(t.hidden);
}

std::string text_of(const std::vector<Fit>& fits, const Cluster& cluster, const FitOptions& options) {
  const NodeShape& node = cluster.nodes.front().shape;
  std::string out = "The largest " + std::string(name_of(options.family)) + " that " + counted(options.gpus, "GPU") + " of " +
                    cluster.name + " can train, sequences of " + with_commas(static_cast<double>(options.seq)) +
                    " tokens; a node has " + in_size(node.host_memory) + " of host memory" +
                    (node.nvme > Bytes{} ? ", " + in_size(node.nvme) + " of NVMe" : "") + "\n\n";
  out = wrapped(out.substr(0, out.size() - 2), 0) + "\n\n";
  TextTable table{.columns = {{"elsewhere", Align::Left},
                              {"parameters"},
                              {"shape"},
                              {"batch"},
                              {"tokens/s"},
                              {"tokens/day"},
                              {"binds", Align::Left},
                              {"speed"}}};
  for (const Fit& fit : fits) {
    if (!fit.model) {
      table.rows.push_back(
          {fit.way.name, fit.bug ? "failed" : "none", "", "", "", "", fit.bug ? "internal error" : name_of(fit.binds), ""});
      continue;
    }
    char day[32];
    std::snprintf(day, sizeof day, "%.3g M", fit.tokens_per_s * kSecondsPerDay / 1e6);
    table.rows.push_back({fit.way.name, billions(fit.parameters), shape_of(*fit.model),
                          std::to_string(fit.micro_batch * options.gpus), with_commas(fit.tokens_per_s), day,
                          name_of(fit.binds), fit.speed ? in_percent(*fit.speed, 0) : "-"});
  }
  out += table.text(true) + "\n";
  for (const Fit& fit : fits) out += "  " + wrapped(fit.way.name + ": " + fit.way.what, 4, kTextWidth - 2) + "\n";
  return out + "  " +
         wrapped(
             "shape: layers x hidden size; batch: sequences per step, the fastest tried; layers are recomputed. binds: what "
             "the next larger model has too little of; speed: of the largest model of the first line, against "
             "that line.",
             2, kTextWidth - 2) +
         "\n";
}

std::string json_of(const std::vector<Fit>& fits, const FitOptions& options) {
  JsonWriter json;
  json.begin_object().field("gpus", options.gpus).field("seq", options.seq).field("family", name_of(options.family));
  json.key("ways").begin_array();
  for (const Fit& fit : fits) {
    json.begin_object().field("name", fit.way.name).field("what", fit.way.what).field("binds", name_of(fit.binds));
    json.field("feasible", fit.model.has_value()).field("failed", fit.bug);
    json.field("next_larger", fit.why);
    if (fit.model) {
      const auto& t = std::get<Transformer>(fit.model->shape);
      json.field("parameters", fit.parameters).field("layers", t.layers).field("hidden", t.hidden);
      json.field("micro_batch", fit.micro_batch).field("iteration_s", fit.iteration.value);
      json.field("tokens_per_s", fit.tokens_per_s);
      json.field("tokens_per_day", fit.tokens_per_s * kSecondsPerDay);
    }
    json.key("speed");
    if (fit.speed)
      json.value(*fit.speed);
    else
      json.null();
    json.end_object();
  }
  return json.end_array().end_object().text();
}

std::vector<std::string> read_policies(const Arguments& arguments) {
  if (!arguments.has("--policy")) return {};
  std::vector<std::string> names = {"all"}, all;
  for (const RuntimePolicy& policy : runtime_policies()) all.push_back(policy.name);
  names.insert(names.end(), all.begin(), all.end());
  const std::string wanted = arguments.choice("--policy", "all", names);
  return wanted == "all" ? all : std::vector<std::string>{wanted};
}

ExitCode run_fit(const Arguments& arguments, const Console& console) {
  const Cluster cluster = read_cluster(arguments);
  FitOptions options;
  options.family = arguments.choice("--family", "llama", {"llama", "gpt"}) == "gpt" ? SizedFamily::Gpt : SizedFamily::Llama;
  options.gpus = static_cast<int>(arguments.integer("--gpus", gpu_count(cluster), 1, INT32_MAX));
  options.seq = arguments.integer("--seq", 2048, 1, 1'048'576);
  options.base.recompute = {.kind = RecomputeKind::Full};
  options.policies = read_policies(arguments);
  const bool bf16 = std::ranges::all_of(cluster.gpus, [](const Gpu& gpu) { return gpu.bf16.value > 0; });
  if (!bf16) options.base.precision = DType::F16;
  Progress progress(arguments.choice("--progress", "auto", progress_modes()), console);
  options.progress = [&](double fraction) { progress.report(fraction); };
  options.stop = &watch_interrupt("foreshard: stopping after this way\n");
  const std::vector<Fit> fits = largest_models(cluster, options);
  if (arguments.flag("--json"))
    console.out << json_of(fits, options);
  else
    console.out << text_of(fits, cluster, options);
  bool bug = false;
  for (const Fit& fit : fits) {
    if (!fit.bug) continue;
    bug = true;
    console.err << "foreshard: " << fit.way.name << ": " << fit.why
                << "; please report it with this command: " << shell_line("fit", fit_verb().options, arguments) << "\n";
  }
  if (interrupted()) return ExitCode::Interrupted;
  if (bug) return ExitCode::Bug;
  if (std::ranges::any_of(fits, [](const Fit& fit) { return fit.model.has_value(); })) return ExitCode::Ok;
  if (!fits.empty()) console.err << "foreshard: " << fits.back().way.name << ": " << fits.back().why << "\n";
  return ExitCode::Infeasible;
}

}  // namespace

Verb fit_verb() {
  return {
      .name = "fit",
      .summary =
          "Finds the largest model that a cluster can train when optimizer states, parameters and activations may lie in host "
          "memory or on drives: its size, tokens per day, what binds, and what each way costs in speed.",
      .examples = {"foreshard fit --cluster workstation-rtx4090 --gpus 1 --host-memory 64GiB --seq 2048"},
      .options = {{.name = "--cluster",
                   .value = "NAME|FILE",
                   .help = "a shipped cluster, with -xN for N nodes, or a cluster file",
                   .required = true},
                  {.name = "--gpus", .value = "N", .help = "use N GPUs of the cluster (default: all)"},
                  {.name = "--host-memory", .value = "SIZE", .help = "of each node, such as 64GiB (default: the cluster's)"},
                  {.name = "--nvme", .value = "SIZE", .help = "drives of each node, such as 2TB (default: the cluster's)"},
                  {.name = "--seq", .value = "N", .help = "tokens per sequence (default: 2048)"},
                  {.name = "--family", .value = "WORD", .help = "shapes of the models: llama, gpt (default: llama)"},
                  {.name = "--policy",
                   .value = "NAME|all",
                   .help = "a runtime policy, or all of them, instead of what no policy names (list policies)"},
                  {.name = "--json", .help = "print JSON"},
                  progress_option()},
      .run = run_fit};
}

}  // namespace foreshard
