#include "cli/job/effort.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/plan/ranks.h"
#include "report/words/text_table.h"
#include "strategy/tune/hybrid_model.h"
#include "strategy/tune/tune.h"

namespace foreshard {

namespace {

// Measured on one core of a server, see tests/cli/job/effort_test.cpp.
constexpr double kLowerBytes = 220, kLowerSeconds = 0.3e-6;  // per action
constexpr double kRankBytes = 5e3, kRankSeconds = 4e-4;  // per rank that is replayed (not folded): its links and collectives
constexpr double kSearchSeconds = 4.2e-4, kSearchBytes = 800;  // per GPU
constexpr double kChoiceSeconds = 3e-3;                        // per layer, and per doubling of batch and of GPUs
constexpr double kSearchedBatch = 16, kSearchedPlays = 5;      // sequences of a micro-batch, strategies replayed completely
constexpr double kLayerSeconds = 0.8e-6;                       // per pair of layers of a rank, whose blocks are packed together
constexpr std::int64_t kLittle = 20'000;                       // actions and ranks below which no estimate is made
constexpr double kMostBytes = 4.0 * (1 << 30), kMostSeconds = 60;

std::string number(double value) { return value < 100 ? std::to_string(std::lround(value)) : with_commas(std::round(value)); }

// Number of spans that the simulator makes of one run of a segment. At granularity layer or stage a span includes collectives.
double spans_of(const Segment& segment, Granularity granularity) {
  if (granularity == Granularity::Op) return static_cast<double>(segment.instructions.size());
  double spans = 1;
  const Instruction* before = nullptr;
  for (const Instruction& instruction : segment.instructions) {
    const bool alone = std::holds_alternative<Exchange>(instruction.what);
    if (alone || (granularity == Granularity::Layer && before && before->layer != instruction.layer)) ++spans;
    if (!alone) before = &instruction;
  }
  return spans;
}

struct SpanCost {
  double bytes = 0, seconds = 0;
};
SpanCost span_cost(Granularity granularity) {
  switch (granularity) {
    case Granularity::Op: return {65, 0.6e-6};
    case Granularity::Layer: return {400, 1.5e-6};
    case Granularity::Stage: return {400, 4e-6};
  }
  return {};
}

struct Count {
  double actions = 0, spans = 0, ranks = 0;  // of the ranks that are replayed
};

Count count(const Plan& plan, const EffortOptions& work) {
  std::vector<double> spans;
  for (const Segment& segment : plan.segments) spans.push_back(spans_of(segment, work.granularity));
  Count all;
  for (const Role& role : plan.roles) {
    double ranks = 1, tp = 1;
    for (const AxisId axis : role.axes) {
      ranks *= plan.axes[axis.index()].size;
      if (plan.axes[axis.index()].dense == DenseKind::Tensor) tp *= plan.axes[axis.index()].size;
    }
    const double played = work.folding == Folding::Full ? 1 : work.folding == Folding::Tp ? ranks / tp : ranks;
    for (const Action& action : role.actions) all.spans += played * spans[action.segment.index()];
    all.actions += static_cast<double>(role.actions.size());
    all.ranks += work.folding == Folding::Full ? 0 : played;
  }
  return all;
}

Effort effort(const Count& c, const EffortOptions& work) {
  Effort e;
  double bytes = c.actions * kLowerBytes, seconds = c.actions * kLowerSeconds;
  if (work.kind == WorkKind::Simulate) {
    const SpanCost span = span_cost(work.granularity);
    bytes += c.spans * span.bytes + c.ranks * kRankBytes;
    seconds += c.spans * span.seconds + c.ranks * kRankSeconds;
  }
  e.memory = {static_cast<std::int64_t>(std::min(bytes, 9e18))};
  e.time = {seconds};
  return e;
}

// The same job with few micro-batches and without choices that take a search: it is cheap to lower and has the same segments.
std::optional<Plan> small_twin(const Job& job, Strategy strategy, std::int64_t microbatches) {
  strategy.batch.global = microbatches * strategy.batch.micro * strategy.dp;
  strategy.recompute = {};
  if (strategy.pipeline.layer_split == "auto") strategy.pipeline.layer_split.clear();
  auto answer = tuned_plan(job.model, job.cluster, strategy, {.ignore_memory = true, .check = false, .profile = job.measured()});
  if (auto* lowered = std::get_if<Lowered>(&answer)) return std::move(lowered->plan);
  return {};
}

Effort search_effort(const Job& job) {
  const double gpus = gpu_count(job.cluster);
  const double batch = static_cast<double>(job.strategy.batch.global);
  const SpanCost span = span_cost(Granularity::Stage);
  const double layers = split_layers(job.model);
  const double actions = 2 * batch / gpus / kSearchedBatch;  // per rank, a lower bound
  return {.memory = {static_cast<std::int64_t>(std::min(9e18, gpus * kSearchBytes + actions * span.bytes))},
          .time = {layers * std::log2(batch + 1) * std::log2(gpus) * kChoiceSeconds + gpus * kSearchSeconds +
                   kSearchedPlays * actions * span.seconds},
          .size = "a search over " + number(gpus) + " GPUs and " + number(batch) + " sequences per step"};
}

}  // namespace

Effort effort_of(const Plan& plan, const EffortOptions& work) {
  const Count c = count(plan, work);
  Effort e = effort(c, work);
  e.size = number(c.actions) + " actions" + (c.ranks > 0 ? " on " + number(c.ranks) + " ranks, each by itself" : "");
  return e;
}

Effort effort_of(const Job& job, const EffortOptions& work) {
  if (work.kind == WorkKind::Search) return search_effort(job);
  const auto resolved = resolve(job.model, job.cluster, job.strategy);
  const Strategy* s = std::get_if<Strategy>(&resolved);
  if (!s || !s->stages.empty() || s->dp < 1) return {};
  const std::int64_t microbatches = s->batch.global / (std::int64_t{s->batch.micro} * s->dp);
  const std::int64_t actions = 2 * microbatches * s->pp * s->virtual_stages;
  const double layers = static_cast<double>(split_layers(job.model)) / s->pp;
  if (const double packing = s->pp * layers * layers * kLayerSeconds; packing > kMostSeconds)
    return {.time = {packing},
            .size = number(layers) + " layers on a GPU, whose memory is planned together,",
            .instead = "a model of fewer layers, or more --pp, takes less"};
  const std::int64_t ranks = work.folding == Folding::Full ? 1 : std::int64_t{s->dp} * s->cp * s->tp;
  if (actions <= kLittle && ranks * s->pp <= kLittle && actions * ranks <= kLittle) return {};
  const std::int64_t few = std::min<std::int64_t>(microbatches, 2 * s->pp);
  const std::optional<Plan> twin = small_twin(job, *s, few);
  if (!twin) return {};
  Count c = count(*twin, work);
  const double more = static_cast<double>(microbatches) / static_cast<double>(few);
  c.actions *= more, c.spans *= more;
  Effort e = effort(c, work);
  e.size = number(static_cast<double>(microbatches)) + (microbatches == 1 ? " micro-batch on " : " micro-batches on ") +
           counted(s->pp, "pipeline rank") + ": " + number(c.actions) + " actions" +
           (c.ranks > 0 ? ", " + number(c.ranks) + " ranks each by itself" : "");
  return e;
}

void refuse_large(const Effort& effort, const Arguments& arguments, const std::string& instead) {
  const auto bytes = static_cast<double>(effort.memory.value);
  if ((bytes <= kMostBytes && effort.time.value <= kMostSeconds) || arguments.flag("--force")) return;
  throw Error(effort.size + " would take about " + in_gib_text(effort.memory) + " GiB and " + in_time(effort.time) + " here; " +
              (effort.instead.empty() ? instead : effort.instead) + ", or --force");
}

void refuse_large_search(const Job& job, const Arguments& arguments) {
  refuse_large(effort_of(job, {.kind = WorkKind::Search}), arguments, "fewer --nodes or a smaller --global-batch take less");
}

VerbOption force_option() {
  return {.name = "--force", .help = "start even what is estimated to need more than 4 GiB or 60 s"};
}

}  // namespace foreshard
