// foreshard partition: where to cut the layers when every stage may choose its own data and tensor parallelism, and how far the best
// plan with equal stages is from that.
#include <ostream>

#include "cli/job.h"
#include "core/error.h"
#include "core/json.h"
#include "report/text_table.h"
#include "strategy/hybrid_model.h"

namespace foreshard {

namespace {

struct Answer {
  HybridJob job = {};
  HybridPartition partition = {};
  std::optional<UniformPlan> plan = {};
};

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

std::string text_of(const Answer& answer, const Job& job) {
  const double m = answer.job.microbatches;
  std::string out = "Layers of " + job.model.name + " on " + std::to_string(answer.job.devices) + " GPUs of " +
                    job.cluster.name + ", " + std::to_string(static_cast<std::int64_t>(m)) + " micro-batches of " +
                    std::to_string(job.strategy.micro_batch) + " per step\n\n";
  out += stages_table(answer);
  out += "\n  The slowest stage or link takes " + in_time({answer.partition.cost}) + " per micro-batch, " +
         in_time({m * answer.partition.cost}) + " for those of a step, without fill and drain.\n";
  if (!answer.plan) return out + "  No plan with equal stages fits.\n";
  const UniformPlan& plan = *answer.plan;
  const Strategy& s = plan.strategy;
  out += "\nThe best plan that can be run, with as many replicas and tensor ranks on every stage:\n\n  --tp " +
         std::to_string(s.tp) + " --pp " + std::to_string(s.pp) + " --dp " + std::to_string(s.dp) +
         (s.layer_split.empty() ? "" : " --layer-split " + s.layer_split) + "\n\n";
  out += "  Its slowest stage or link takes " + in_time({plan.partition.cost}) + " per micro-batch (" +
         in_percent(plan.partition.cost / answer.partition.cost - 1) + " more), its step " + in_time(plan.estimate.time) +
         " with fill, drain and gradients.\n";
  bool equal = true;
  for (const HybridStage& stage : answer.partition.stages) equal &= stage.tensor == s.tp && stage.replicas == s.dp;
  if (!equal)
    out += "  The partition above has stages that differ in replicas or tensor ranks: no plan can say that (docs/search.md).\n";
  return out;
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
  json.key("runnable");
  if (answer.plan) {
    const Strategy& s = answer.plan->strategy;
    json.begin_object();
    json.field("tp", s.tp).field("pp", s.pp).field("dp", s.dp).field("layer_split", s.layer_split);
    json.field("per_microbatch_s", answer.plan->partition.cost).field("estimate_s", answer.plan->estimate.time.value);
    json.end_object();
  } else {
    json.null();
  }
  json.end_object();
  return json.text();
}

ExitCode run(const Arguments& arguments, const Console& console) {
  const Job job = read_job(arguments);
  if (job.strategy.global_batch <= 0)
    throw Error(kCommandLine, "--global-batch", "nothing", "the number of sequences per step");
  if (job.strategy.global_batch % job.strategy.micro_batch != 0)
    throw Error(kCommandLine, "--micro-batch", std::to_string(job.strategy.micro_batch), "a divisor of --global-batch");
  Answer answer;
  answer.job =
      hybrid_job(job.model, job.cluster, job.strategy, static_cast<int>(arguments.integer("--max-tp", 0, 0, 1'000'000)));
  answer.partition = partition_with_memory(answer.job);
  if (answer.partition.stages.empty()) {
    const Infeasible empty{
        .reason = "no partition fits: the layers need more memory than all GPUs have, with whole optimizer states",
        .would_help = {"a larger cluster", "--recompute full", "a smaller --micro-batch"}};
    if (arguments.flag("--json"))
      console.out << infeasible_json(empty);
    else
      complain(empty, console);
    return ExitCode::Infeasible;
  }
  answer.plan = best_uniform_plan(job.model, job.cluster, job.strategy, answer.job);
  console.out << (arguments.flag("--json") ? json_of(answer) : text_of(answer, job));
  return ExitCode::Ok;
}

}  // namespace

Verb partition_verb() {
  Verb verb = {.name = "partition",
               .summary = "Cuts the layers into stages with data and tensor parallelism of their own.",
               .notes =
                   "Prints the exact optimum of the slowest stage or link per micro-batch, and the best plan with equal "
                   "stages, which can be run. Degrees, schedule and ZeRO of the options are not looked at.",
               .examples = {"foreshard partition --model gpt2-1.5b --cluster eth25-a100-x8 --global-batch 64"},
               .options = job_options(),
               .run = run};
  verb.options.push_back({.name = "--max-tp", .value = "N", .help = "no tensor-parallel degree above N", .group = "search"});
  verb.options.push_back({.name = "--json", .help = "print JSON", .group = "output"});
  return verb;
}

}  // namespace foreshard
