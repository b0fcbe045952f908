#include "cli/job/prepared.h"

#include <algorithm>

#include "cli/job/first_answer.h"
#include "cli/job/job.h"
#include "cli/job/notes.h"
#include "cli/job/profile.h"
#include "cli/job/sound_plan.h"
#include "cli/job/unchanged.h"
#include "core/check/plan_cluster.h"
#include "core/cluster_file/cluster_file.h"
#include "core/cluster_file/cluster_settings.h"
#include "core/json/json.h"
#include "core/json/json_edit.h"
#include "core/plan/cost_tables.h"
#include "core/strategy/strategy_options.h"
#include "report/words/text_table.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/cost/plan_costs.h"
#include "strategy/schedule/schedule.h"
#include "strategy/search/search_framework.h"
#include "strategy/tune/tune.h"

namespace foreshard {

namespace {

struct PlanOrigin {  // Plan::origin, as lower writes it
  std::string model = {}, cluster = {};
  std::vector<std::string> settings = {};  // of model and cluster
  Strategy strategy = {};
  Workload workload = {};
};

}  // namespace

static PlanOrigin read_origin(const Plan& plan, const std::string& file) {
  const std::string where = file + ": origin";
  const JsonReader json = JsonReader::parse(plan.origin.empty() ? "{}" : plan.origin, where);
  PlanOrigin origin;
  if (const auto model = json.find("model")) origin.model = model->as_string();
  if (const auto cluster = json.find("cluster")) origin.cluster = cluster->as_string();
  if (json.has("strategy")) origin.strategy = parse_strategy(json_value(plan.origin, "strategy", where), where);
  if (const auto settings = json.find("settings"))
    for (const JsonReader& setting : settings->elements()) origin.settings.push_back(setting.as_string());
  if (const auto workload = json.find("workload")) {
    origin.workload.tokens_per_sample = workload->at("tokens_per_sample").as_int(0);
    origin.workload.model_flops_per_sample = {workload->at("model_flops_per_sample").as_double(0)};
    if (const auto masked = workload->find("masked_flops_per_sample"))
      origin.workload.masked_flops_per_sample = {masked->as_double(0)};
    origin.workload.parameters = workload->at("parameters").as_int(0);
  }
  return origin;
}

static Prepared finished(Plan plan, Cluster cluster, PlanOrigin origin) {
  Prepared prepared;
  prepared.verdict = verdict(plan, cluster, origin.strategy, {});
  prepared.model = std::move(origin.model);
  prepared.strategy = std::move(origin.strategy);
  prepared.workload = origin.workload;
  prepared.cluster = std::move(cluster);
  prepared.plan = std::move(plan);
  return prepared;
}

static constexpr const char* kPlayLess = "--granularity stage and --folding full take less";

static Prepared from_plan(const Arguments& arguments, const EffortOptions& work) {
  const std::string file = arguments.text("--plan");
  for (const VerbOption& option : job_options())
    if (arguments.has(option.name) && option.name != "--cluster" && option.name != "--profile")
      throw Error(kCommandLine, option.name, "an option of a job",
                  "only --cluster beside --plan: the plan has its model and strategy");
  Plan plan = load_plan(file);
  PlanOrigin origin = read_origin(plan, file);
  const std::string cluster = arguments.text("--cluster", origin.cluster);
  if (cluster.empty()) throw Error(kCommandLine, "--cluster", "nothing", "a cluster: the plan names none");
  Cluster on = arguments.has("--cluster") ? load_cluster(cluster) : cluster_of_origin(plan.origin, file + ": origin");
  if (const std::string why = gpus_differ(plan, on); !why.empty()) throw Error(file + ": " + why);
  refuse_large(effort_of(plan, work), arguments, kPlayLess);
  expect_sound(plan, file);
  auto profile = read_profile(on, arguments);
  if (profile) {
    check_framework(*profile, origin.strategy.framework, arguments.text("--profile"));
    cost_plan(plan, on, framework_preset(origin.strategy.framework), &*profile);
  }
  for (const Role& role : plan.roles)
    if (!find_costs(plan, role))
      throw Error(file, "role '" + role.name + "'.device_kind", "'" + role.device_kind + "'",
                  "a device kind with costs in the plan");
  Prepared prepared = finished(std::move(plan), std::move(on), std::move(origin));
  prepared.profile = std::move(profile);
  return prepared;
}

// The answer stands without the advice.
static std::vector<std::string> advice(const Job& job) {
  try {
    return would_help(job);
  } catch (const Bug& bug) {
    return {std::string("(no advice, because of an internal error; please report it: ") + bug.what() + ")"};
  }
}

// The plan of a job, and whether it fits.
static std::variant<Prepared, Refused> lowered_job(const Job& job) {
  // The caller checks the plan while it is simulated.
  auto answer = tuned_plan(job.model, job.cluster, job.strategy,
                           {.ignore_memory = true, .check = false, .profile = job.measured(), .settings = job.settings});
  if (auto* infeasible = std::get_if<Infeasible>(&answer))
    return Refused{job.model.name, job.cluster.name, job.strategy, std::move(*infeasible)};
  Lowered& lowered = std::get<Lowered>(answer);
  PlanOrigin origin = read_origin(lowered.plan, "plan");
  Prepared prepared = finished(std::move(lowered.plan), job.cluster, std::move(origin));
  prepared.profile = job.profile;
  if (!names_framework(prepared.strategy)) return prepared;
  auto held = framework_allocation(job.model, job.cluster, prepared.strategy);
  if (auto* allocation = std::get_if<FrameworkAllocation>(&held)) prepared.allocation = std::move(*allocation);
  prepared.verdict = verdict(prepared.plan, prepared.cluster, prepared.strategy, prepared.allocation);
  return prepared;
}

// Where nothing but model and cluster was asked for, and that is refused or does not fit: the same job with a strategy that fits.
static void answer_with_what_fits(const Arguments& arguments, const Console& console, Job& job,
                                  std::variant<Prepared, Refused>& answer) {
  using enum Verdict::Kind;
  const auto* given = std::get_if<Prepared>(&answer);
  if (given && given->verdict.kind != DoesNotFit) return;
  const auto found = first_answer(arguments, job, given ? given->strategy : job.strategy);
  if (!found) return;
  Job other = job;
  other.strategy = found->strategy;
  auto instead = lowered_job(other);
  const auto* fitting = std::get_if<Prepared>(&instead);
  if (!fitting || fitting->verdict.kind == DoesNotFit) return;
  say(arguments, console,
      "no degrees were given, and data parallelism alone " +
          (given ? "does not fit" : "is refused (" + std::get<Refused>(answer).why.reason + ")") + ": this is the answer for " +
          found->options + ", which " + name_of(fitting->verdict.kind) +
          " (--as-given: without it; foreshard search: all strategies)");
  job = std::move(other), answer = std::move(instead);
}

std::variant<Prepared, Refused> prepare(const Arguments& arguments, const Console& console, const EffortOptions& work) {
  if (arguments.has("--plan")) return from_plan(arguments, work);
  for (const char* needed : {"--model", "--cluster"})
    if (!arguments.has(needed))
      throw Error(kCommandLine, needed, "nothing", "a name or a file, or --plan FILE; see \"foreshard simulate --help\"");
  Job job = read_job_of_a_plan(arguments);
  say_of_job(arguments, job, console);
  refuse_large(effort_of(job, work), arguments, std::string("a smaller --global-batch, ") + kPlayLess);
  auto answer = lowered_job(job);
  answer_with_what_fits(arguments, console, job, answer);
  auto* made = std::get_if<Prepared>(&answer);
  if (!made) return answer;
  Prepared& prepared = *made;
  if (const auto runner = find_runner(prepared.strategy.framework))
    if (const std::string why = why_not_run_by(*runner, prepared.strategy); !why.empty())
      say(arguments, console, prepared.strategy.framework + " cannot run this strategy: " + why);
  if (prepared.verdict.kind == Verdict::Kind::DoesNotFit) prepared.would_help = advice(job);
  prepared.say_without_effect = [&arguments, &console, job = std::move(job)](const Plan& plan) {
    say_all(arguments, console, without_effect(arguments, job, plan, {.played = true}));
    say_all(arguments, console, settings_without_effect(arguments, job, plan));
  };
  return answer;
}

// As the tables print it: "1,536", "10.00 GiB"; other texts as they are.
static std::string headline_value(const StrategyOption& option, const std::string& value) {
  if (value.empty() || value.find_first_not_of("0123456789") != std::string::npos) return value;
  if (option.type == OptionType::Integer) return count_text(std::stoll(value));
  if (option.type == OptionType::Bytes) return in_size({std::stoll(value)});
  return value;
}

std::vector<std::string> headline(const Strategy& strategy) {
  std::vector<std::string> words;
  const Strategy defaults = with_preset(Model{}, Strategy{});
  static const std::vector<std::string> first = {
      "tp", "cp", "pp", "dp", "ep", "etp", "virtual_stages", "schedule", "micro_batch", "global_batch", "seq", "precision"};
  const auto add = [&](const StrategyOption& option, bool always) {
    std::string value = option.get(strategy);
    if (!always && (value == option.get(defaults) || value == "auto")) return;
    if (value.starts_with("loads:")) value = "measured";
    std::string name = option.path;
    std::replace(name.begin(), name.end(), '_', ' ');
    if (option.type == OptionType::Flag)
      words.push_back(name);
    else
      words.push_back(name + " " + headline_value(option, value));
  };
  const auto said_by_stages = [&](const std::string& path) {
    return !strategy.stages.empty() && (path == "tp" || path == "pp" || path == "dp");
  };
  if (!strategy.stages.empty()) add(*find_option("stages"), true);
  for (const std::string& path : first) {
    if (said_by_stages(path)) continue;
    const bool cells = strategy.pipeline.schedule && schedule_entry(*strategy.pipeline.schedule).cells;
    if (path == "schedule" && strategy.pp == 1 && !cells) continue;  // then one stage has only one order
    if (path == "seq" && strategy.batch.seq == 1) continue;          // samples are not sequences
    if (const StrategyOption* option = find_option(path)) add(*option, path == "tp" || path == "pp" || path == "dp");
  }
  // Values that the engine chose without being asked are not mentioned.
  static const std::vector<std::string> resolved = {
      "attention",      "bucket",           "placement",         "param_dtype",   "grad_dtype", "state_dtype",
      "zero_group",     "microbatch_group", "framework_memory",  "layer_split",   "stages",     "vocab_multiple",
      "schedule_order", "schedule_times",   "expert_node_ranks", "compress_group"};
  for (const StrategyOption& option : strategy_options()) {
    const auto in = [&](const std::vector<std::string>& paths) {
      return std::find(paths.begin(), paths.end(), option.path) != paths.end();
    };
    if (option.path == "context" && strategy.cp == 1) continue;
    const bool assumed =
        option.path == "expert_load" && strategy.experts.ep > 1;  // an assumption on the data, so it is always mentioned
    if (!in(first) && !in(resolved)) add(option, assumed);
  }
  return words;
}

}  // namespace foreshard
