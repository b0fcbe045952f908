// foreshard partition: where to cut the layers when every stage may choose its own data and tensor parallelism, and how far the best
// plan with equal stages is from that.
#include <algorithm>
#include <cstdio>
#include <ostream>

#include "cli/job/effort.h"
#include "cli/job/job.h"
#include "cli/job/notes.h"
#include "cli/job/unchanged.h"
#include "cli/parts/search_run.h"
#include "cli/program/help.h"
#include "core/base/error.h"
#include "core/json/json.h"
#include "core/result/memory_timeline.h"
#include "replay/replay.h"
#include "report/words/text_table.h"
#include "strategy/tune/hybrid_model.h"
#include "strategy/tune/hybrid_search.h"
#include "strategy/tune/hybrid_stages.h"
#include "strategy/tune/tune.h"

namespace foreshard {

namespace {

struct Staged {
  Strategy strategy = {};
  double cost = 0;     // time of the slowest stage or link
  double seconds = 0;  // simulated
  Bytes margin = {};   // free memory of the fullest GPU, without the reserve
};

struct Answer {
  HybridJob job = {};
  HybridPartition partition = {};
  std::optional<UniformPlan> plan = {};
  double plan_seconds = 0;  // simulated
  std::optional<Staged> staged = {};
  std::optional<Infeasible> why_none = {};
  int simulated = 0;  // number of staged plans that were simulated
};

constexpr int kSimulated = 8;  // partitions that are simulated
constexpr int kSteps = 40;     // of the local search from the fastest partition, and from the best plan with equal stages

double seconds_of(const Plan& plan, const Job& job) {
  return makespan_of(plan, job.cluster, {.granularity = Granularity::Stage});
}

double slowest(const HybridJob& job, const std::vector<StageDegrees>& stages) {
  double cost = 0;
  int first = 0;
  for (const StageDegrees& stage : stages) {
    cost = std::max(cost, hybrid_cost(job, {first, first + stage.layers, stage.dp, stage.tp}));
    first += stage.layers;
  }
  return cost;
}

Bytes margin_of(const Plan& plan, const Cluster& cluster) {
  const auto margin = [&](const Role& role) {
    return gpu_of(cluster, role.device_kind).memory - plan.reserve - plan.framework - arena_bytes(role, Space::Device);
  };
  return margin(*std::ranges::min_element(plan.roles, {}, margin));
}

// Simulates the partitions and the best plan with equal stages, then improves the fastest of them by local search.
void find_staged(const Job& job, Answer& answer) {
  const StagedPlans found =
      staged_plans(job.model, job.cluster, job.strategy, answer.job, {.most = kSimulated, .profile = job.measured()});
  answer.why_none = found.why_none;
  if (found.plans.empty()) return;
  std::vector<Strategy> proposals;
  for (const StagedPlan& plan : found.plans) proposals.push_back(with_stages(job.strategy, plan.lowered.strategy.stages));
  if (answer.plan)
    proposals.push_back(with_stages(
        job.strategy, stages_of(answer.plan->strategy, static_cast<int>(answer.job.degrees.front().layers.size()))));
  const JudgeStrategies judge = [&](const std::vector<Strategy>& strategies) {
    std::vector<std::optional<double>> seconds;
    for (const Strategy& strategy : strategies) {
      const auto made = tuned_plan(job.model, job.cluster, strategy, {.profile = job.measured()});
      const auto* lowered = std::get_if<Lowered>(&made);
      seconds.push_back(lowered ? std::optional(seconds_of(lowered->plan, job)) : std::nullopt);
    }
    return seconds;
  };
  const auto best = improve_stages(proposals, {.devices = answer.job.devices, .steps = kSteps}, judge);
  FS_ASSERT(best);  // the proposals fit
  answer.simulated = best->judged;
  const auto made = tuned_plan(job.model, job.cluster, best->strategy, {.profile = job.measured()});
  const Lowered& lowered = std::get<Lowered>(made);
  answer.staged = {lowered.strategy, slowest(answer.job, best->strategy.stages), best->seconds,
                   margin_of(lowered.plan, job.cluster)};
}

// The plans that can be run, and their times on the simulator.
void find_plans(const Job& job, Answer& answer) {
  answer.plan = best_uniform_plan(job.model, job.cluster, job.strategy, answer.job, job.measured());
  if (answer.plan)
    answer.plan_seconds = seconds_of(
        std::get<Lowered>(tuned_plan(job.model, job.cluster, answer.plan->strategy, {.profile = job.measured()})).plan, job);
  find_staged(job, answer);
}

const TensorDegree& degree_of(const HybridJob& job, int tensor) {
  for (const TensorDegree& degree : job.degrees)
    if (degree.degree == tensor) return degree;
  FS_ASSERT(false);
  return job.degrees.front();
}

struct StageTimes {
  double forward = 0, backward = 0;  // of one micro-batch on one replica
};

StageTimes times_of(const HybridJob& job, const HybridStage& stage) {
  StageTimes times;
  const TensorDegree& degree = degree_of(job, stage.tensor);
  for (int i = stage.first; i < stage.last; ++i) {
    const ChainLayer& layer = degree.layers[static_cast<std::size_t>(i)];
    times.forward += layer.forward, times.backward += layer.backward;
  }
  return times;
}

std::string layers_text(const HybridStage& stage) {
  const std::string first = std::to_string(stage.first);
  return stage.last - stage.first == 1 ? first : first + ".." + std::to_string(stage.last - 1);
}

std::string stages_table(const Answer& answer) {
  TextTable table{
      .columns = {{"stage"}, {"layers"}, {"GPUs"}, {"replicas"}, {"tensor"}, {"forward"}, {"backward"}, {"per micro-batch"}}};
  for (const HybridStage& stage : answer.partition.stages) {
    const StageTimes times = times_of(answer.job, stage);
    table.rows.push_back({std::to_string(table.rows.size()), layers_text(stage), std::to_string(stage.devices()),
                          std::to_string(stage.replicas), std::to_string(stage.tensor), in_time({times.forward}),
                          in_time({times.backward}), in_time({hybrid_cost(answer.job, stage)})});
  }
  return table.text(false);
}

std::string decimal(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", number);
  return text;
}

std::string beside_bound(const Answer& answer, double cost) {
  return "Its slowest stage or link takes " + in_time({cost}) + " per micro-batch (" +
         in_percent(cost / answer.partition.cost - 1) + " more)";
}

std::string free_text(Bytes margin) { return "; " + in_gib_text(margin) + " GiB headroom per GPU, after the reserve"; }

std::string staged_text(const Answer& answer) {
  if (!answer.staged)
    return "\nNo plan with stages of their own can be run" +
           (answer.why_none ? ": " + answer.why_none->reason : std::string()) + ".\n";
  return "\nThe fastest of " + std::to_string(answer.simulated) +
         " simulated plans whose stages have replicas and tensor ranks of their own:\n\n  --stages " +
         to_text(answer.staged->strategy.stages) + "\n\n" +
         paragraph(beside_bound(answer, answer.staged->cost) + ", its step " + in_time({answer.staged->seconds}) +
                   " with fill, drain and gradients" + free_text(answer.staged->margin) + ".");
}

std::string uniform_text(const Answer& answer) {
  if (!answer.plan) return "\nNo plan with equal stages fits.\n";
  const Strategy& s = answer.plan->strategy;
  std::string out = "\nThe best plan with as many replicas and tensor ranks on every stage:\n\n  --tp " + std::to_string(s.tp) +
                    " --pp " + std::to_string(s.pp) + " --dp " + std::to_string(s.dp) +
                    (s.pipeline.layer_split.empty() ? "" : " --layer-split " + s.pipeline.layer_split) + "\n\n";
  std::string said = beside_bound(answer, answer.plan->partition.cost) + ", its step " + in_time({answer.plan_seconds});
  if (answer.staged) {
    const double times = answer.plan_seconds / answer.staged->seconds;
    said += decimal(times) == "1.00"
                ? ", as long as that"
                : ", " + decimal(times >= 1 ? times : 1 / times) + " times as " + (times >= 1 ? "long" : "fast");
  }
  return out + paragraph(said + free_text(answer.plan->estimate.margin) + ".");
}

std::string text_of(const Answer& answer, const Job& job) {
  const double m = answer.job.microbatches;
  std::string out = "Layers of " + job.model.name + " on " + counted(answer.job.devices, "GPU") + " of " + job.cluster.name +
                    ", " + counted(static_cast<std::int64_t>(m), "micro-batch", "micro-batches") + " of " +
                    std::to_string(job.strategy.batch.micro) + " per step\n\n";
  out += stages_table(answer);
  out += "\n" + paragraph("The slowest stage or link takes " + in_time({answer.partition.cost}) + " per micro-batch, " +
                          in_time({m * answer.partition.cost}) + " for those of a step, without fill and drain.");
  return out + staged_text(answer) + uniform_text(answer);
}

std::string json_of(const Answer& answer) {
  JsonWriter json;
  json.begin_object();
  json.field("per_microbatch_s", answer.partition.cost).field("microbatches", answer.job.microbatches);
  json.field("in_flight", answer.job.in_flight);
  json.key("stages").begin_array();
  for (const HybridStage& stage : answer.partition.stages) {
    const StageTimes times = times_of(answer.job, stage);
    json.begin_object();
    json.field("first_layer", stage.first).field("layers", stage.last - stage.first);
    json.field("replicas", stage.replicas).field("tensor", stage.tensor);
    json.field("forward_s", times.forward).field("backward_s", times.backward);
    json.field("per_microbatch_s", hybrid_cost(answer.job, stage));
    json.end_object();
  }
  json.end_array();
  json.key("staged");
  if (!answer.staged) {
    json.null();
  } else {
    json.begin_object().field("stages", to_text(answer.staged->strategy.stages));
    json.field("per_microbatch_s", answer.staged->cost).field("simulated_s", answer.staged->seconds);
    json.field("margin_bytes", answer.staged->margin.value).end_object();
  }
  json.key("runnable");
  if (answer.plan) {
    const Strategy& s = answer.plan->strategy;
    json.begin_object();
    json.field("tp", s.tp).field("pp", s.pp).field("dp", s.dp).field("layer_split", s.pipeline.layer_split);
    json.field("per_microbatch_s", answer.plan->partition.cost).field("estimate_s", answer.plan->estimate.time.value);
    json.field("simulated_s", answer.plan_seconds).field("margin_bytes", answer.plan->estimate.margin.value);
    json.end_object();
  } else {
    json.null();
  }
  json.end_object();
  return json.text();
}

void save_faster(const Answer& answer, const std::string& path) {
  const bool staged = answer.staged && (!answer.plan || answer.staged->seconds < answer.plan_seconds);
  if (!staged && !answer.plan) throw Error(kCommandLine, "--save-strategy", path, "a job of which some plan fits");
  write_file(path, to_json(staged ? answer.staged->strategy : answer.plan->strategy));
}

// Settings that `partition` chooses itself or does not use. They are no options of this verb, but --set and --strategy FILE can give
// them.
const std::vector<std::string>& not_looked_at() {
  static const std::vector<std::string> paths = {"dp",
                                                 "tp",
                                                 "pp",
                                                 "cp",
                                                 "context",
                                                 "sequence_parallel",
                                                 "virtual_stages",
                                                 "schedule",
                                                 "schedule_times",
                                                 "microbatch_group",
                                                 "delay_wgrad",
                                                 "layer_split",
                                                 "placement",
                                                 "zero",
                                                 "zero_group"};
  return paths;
}

void say_not_looked_at(const Arguments& arguments, const Console& console) {
  for (const std::string& path : not_looked_at()) {
    const StrategyOption& option = *find_option(path);
    if (given(arguments, option))
      say(arguments, console, "--set strategy." + option.path + " changes nothing: partition does not look at it");
  }
  const auto flags = set_by_file_only(arguments, not_looked_at());
  if (flags.empty()) return;
  say(arguments, console,
      joined(flags) + " of " + arguments.text("--strategy") +
          (flags.size() == 1 ? " changes nothing: partition does not look at it"
                             : " change nothing: partition does not look at them"));
}

// Prints a note for each option without which both plans would be the same.
void say_unchanged(const Arguments& arguments, const Console& console, const Job& job, const Answer& answer) {
  std::optional<std::vector<std::string>> notes;
  if (answer.plan) keep_common(notes, without_effect_on_found(arguments, job, answer.plan->strategy, not_looked_at()));
  if (answer.staged) keep_common(notes, without_effect_on_found(arguments, job, answer.staged->strategy, not_looked_at()));
  say_all(arguments, console, notes.value_or(std::vector<std::string>{}));
}

// Why not even one micro-batch on one GPU of any size can run: a format that the GPU lacks, a sequence too long for the model.
std::optional<Infeasible> cannot_run_anywhere(const Job& job) {
  Strategy one = job.strategy;
  one.dp = one.tp = one.pp = one.cp = one.virtual_stages = 1, one.zero.stage = one.zero.group = 0;
  one.pipeline.schedule = {}, one.pipeline.layer_split = "", one.sequence_parallel = false, one.batch.global = one.batch.micro;
  const auto answer = tuned_plan(job.model, job.cluster, one, {.ignore_memory = true, .profile = job.measured()});
  if (const auto* why = std::get_if<Infeasible>(&answer)) return *why;
  return {};
}

ExitCode run_partition(const Arguments& arguments, const Console& console) {
  const Job job = read_search_job(arguments);
  if (!job.strategy.stages.empty())
    throw Error(kCommandLine, "strategy.stages", to_text(job.strategy.stages), "no stages: partition finds them");
  if (job.strategy.communication.asynchronous)
    throw Error(kCommandLine, "--asynchronous", "true",
                "false: partition finds stages, workers of a server are whole replicas");
  if (job.strategy.batch.global <= 0)
    throw Error(kCommandLine, "--global-batch", "nothing", "the number of sequences per step");
  if (job.strategy.batch.global % job.strategy.batch.micro != 0)
    throw Error(kCommandLine, "--micro-batch", std::to_string(job.strategy.batch.micro), "a divisor of --global-batch");
  refuse_large_search(job, arguments);
  say_not_looked_at(arguments, console);
  say_of_job(arguments, job, console);
  Answer answer;
  answer.job = hybrid_job(job.model, job.cluster, job.strategy,
                          static_cast<int>(arguments.integer("--max-tp", 0, 1, 1'000'000)), job.measured());
  answer.partition = partition_hybrid(answer.job);
  if (answer.partition.stages.empty()) {
    const Infeasible empty = cannot_run_anywhere(job).value_or(
        Infeasible{.reason = "no partition fits: the layers need more memory than all GPUs have, with whole optimizer states",
                   .would_help = {"a larger cluster", "--recompute full", "a smaller --micro-batch"}});
    return refuse(empty, arguments, console);
  }
  find_plans(job, answer);
  say_unchanged(arguments, console, job, answer);
  if (arguments.has("--save-strategy")) save_faster(answer, arguments.text("--save-strategy"));
  console.out << (arguments.flag("--json") ? json_of(answer) : text_of(answer, job));
  return ExitCode::Ok;
}

}  // namespace

Verb partition_verb() {
  Verb verb = {
      .name = "partition",
      .summary = "Splits the layers into stages, each with its own data and tensor parallelism.",
      .notes =
          "Prints the exact optimum of the slowest stage or link per micro-batch, then two plans that can be run, with "
          "their simulated times: the best whose stages have degrees of their own and the best with equal stages. "
          "Degrees and orders it finds by itself; the optimizer's states stay whole (ZeRO 0).",
      .examples = {"foreshard partition --model gpt2-1.5b --cluster eth25-a100-x8 --global-batch 64"},
      .options = job_options(),
      .run = run_partition};
  std::erase_if(verb.options, [](const VerbOption& option) {
    const auto is = [&](const std::string& path) { return find_option(path)->flag == option.name; };
    return std::ranges::any_of(not_looked_at(), is) || is("stages");
  });
  verb.options.push_back({.name = "--max-tp", .value = "N", .help = "no tensor-parallel degree above N", .group = "search"});
  verb.options.push_back(
      {.name = "--save-strategy", .value = "FILE", .help = "write the strategy of the faster plan", .group = "output"});
  verb.options.push_back(force_option());
  verb.options.push_back({.name = "--json", .help = "print JSON", .group = "output"});
  return verb;
}

}  // namespace foreshard
