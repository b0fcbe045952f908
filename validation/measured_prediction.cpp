#include "validation/measured_prediction.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/graph/op_graph.h"
#include "replay/light_clock.h"
#include "replay/replay.h"
#include "report/summary/summarize.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/estimate/estimate.h"
#include "strategy/learning/part_shares.h"
#include "strategy/tune/tune.h"
#include "validation/measured_memory.h"

namespace foreshard {

namespace {

// Of a long iteration only kRounds * pp micro-batches are lowered, at least kLeastMicrobatches: enough for the memory peak and for
// a first, a last and a typical micro-batch. The time of further micro-batches follows from the schedule's recurrence. Schedules of cells
// with interleaved stages begin with the forwards of up to three rounds: with 2 rounds 13 published runs are more than 2 % off what 32
// rounds give (up to 8 %), with 3 rounds 3, with 4 one.
constexpr std::int64_t kRounds = 4, kLeastMicrobatches = 4;

Strategy shortened(const Strategy& strategy) {
  const std::int64_t together = strategy.batch.micro * std::max(1, strategy.dp);
  if (strategy.batch.global % together != 0) return strategy;
  const std::int64_t least =
      round_up(std::max(kRounds * strategy.pp, kLeastMicrobatches),
               std::int64_t{strategy.pipeline.microbatch_group > 0 ? strategy.pipeline.microbatch_group : strategy.pp});
  Strategy shorter = strategy;
  shorter.batch.global = std::min(strategy.batch.global, least * together);
  return shorter;
}

int microbatches_of(const Lowered& lowered, const Strategy& strategy) {
  const std::int64_t together = lowered.strategy.batch.micro * lowered.strategy.dp;
  return static_cast<int>(std::max(strategy.batch.global, lowered.strategy.batch.global) / together);
}

// Seconds from the first begin to the last end of the actions of one micro-batch in one direction, whatever the stream.
double span_of(const Result& result, bool forward) {
  Nanoseconds begin = result.trace.makespan, end = {};
  for (const Span& span : result.trace.spans) {
    const Role& role = result.plan.roles[result.trace.classes[span.who.index()].role.index()];
    const std::vector<Does>& does = role.actions[static_cast<std::size_t>(span.action)].does;
    if (does.empty() || does.front().work == Work::Update || (does.front().work == Work::F) != forward) continue;
    begin = std::min(begin, span.begin), end = std::max(end, span.end);
  }
  return to_seconds(end - begin).value;
}

// FLOPs of an iteration as the row counts them.
double counted_flops(const MeasuredCase& question, const Strategy& s) {
  const auto& t = std::get<Transformer>(question.model.shape);
  const auto seq = static_cast<double>(s.batch.seq), batch = static_cast<double>(s.batch.global),
             hidden = static_cast<double>(t.hidden);
  const double attention = 12.0 * t.layers * static_cast<double>(t.heads * t.head_dim) * seq * seq * batch;
  const bool palm = question.quantity == Quantity::Mfu && question.flops == FlopConvention::Model;
  if (palm && framework_preset(question.framework).flop_count == FlopCount::Palm) {
    const std::int64_t again =
        t.tied_embeddings && s.pp > 1 ? t.vocab * t.hidden : 0;  // both ends of a pipeline have the table
    return 6.0 * static_cast<double>(parameter_count(question.model) + again) * batch * seq + attention;
  }
  const double model =
      model_flops_per_sample(question.model, s.batch.seq, s.vocab_multiple * s.tp, s.optimizer.lora, s.batch.packed).value *
      batch;
  if (question.flops == FlopConvention::ModelCausal) return model - attention / 2.0;
  if (question.flops == FlopConvention::Model) return model;
  // arXiv:2104.04473 equation 3: the forward of the layers counts twice (recomputation), that of the vocabulary projection once.
  const auto vocab = static_cast<double>(round_up(t.vocab, s.vocab_multiple * s.tp));
  const double head = 6.0 * batch * seq * hidden * vocab;
  return (model - head) * 4.0 / 3.0 + head;
}

double peak_of(const MeasuredCase& question) {
  const Gpu& gpu = gpu_of(question.cluster, question.cluster.nodes.front().shape.gpu);
  return peak(gpu, DType::BF16).value;
}

double time_value(const MeasuredCase& question, const Strategy& s, const Outcome& o) {
  const auto batch = static_cast<double>(s.batch.global), gpus = static_cast<double>(question.gpus);
  switch (question.quantity) {
    case Quantity::IterationTime: return o.iteration;
    case Quantity::TokensPerGpu: return batch * static_cast<double>(s.batch.seq) / o.iteration / gpus;
    case Quantity::Samples: return batch / o.iteration;
    case Quantity::SamplesPerGpu: return batch / o.iteration / gpus;
    case Quantity::TflopsPerGpu: return counted_flops(question, s) / o.iteration / gpus * 1e-12;
    case Quantity::Mfu: return 100.0 * counted_flops(question, s) / o.iteration / gpus / peak_of(question);
    case Quantity::StageForward: return o.forward * 1e3;
    case Quantity::StageBackwardInput: return o.backward_input * 1e3;
    case Quantity::StageBackwardWeight: return o.backward_weight * 1e3;
    case Quantity::StageTransfer: return o.transfer * 1e3;
    case Quantity::PeakMemory:
    case Quantity::StaticMemory:
    case Quantity::ActivationMemory:
    case Quantity::ActivationShare:
    case Quantity::LayerForward:
    case Quantity::LayerBackward:
    case Quantity::LayerBoth: return 0;
  }
  return 0;
}

Outcome as_run(const MeasuredCase& question, Outcome outcome) {
  if (framework_preset(question.framework).post_validation && !question.barrier)
    outcome.iteration -= outcome.next_iteration_gain;
  return outcome;
}

bool is_layer(Quantity q) { return q == Quantity::LayerForward || q == Quantity::LayerBackward || q == Quantity::LayerBoth; }

}  // namespace

void Predictor::fill(Entry& entry, const Model& model, const Cluster& cluster, const Strategy& shorter, bool longer,
                     bool stage_times, const MachineProfile* profile) {
  Outcome& out = entry.outcome;
  // With learned costs it is a plan that was checked without them.
  const bool known = profile && profile->learned;
  auto answer =
      tuned_plan(model, cluster, shorter, {.ignore_memory = true, .pack_by_order = false, .check = !known, .profile = profile});
  if (const auto* refused = std::get_if<Infeasible>(&answer)) {
    out.reason = refused->reason;
    return;
  }
  Lowered& lowered = std::get<Lowered>(answer);
  out.feasible = true;
  entry.samples_of_microbatch = lowered.strategy.batch.micro * lowered.strategy.dp;
  entry.replayed.emplace(lowered, cluster, longer);
  if (!stage_times) return;
  const std::vector<StageDurations> stages = stage_durations(lowered.plan, cluster);
  player::LightClock clock;
  Result result =
      replay(lowered.plan, cluster, clock, {.granularity = Granularity::Op, .one_class_per_role = true, .memory = false});
  result.plan = std::move(lowered.plan);
  const Summary summary = summarize(result, cluster, {});
  const StageTimes& middle = summary.stage_times[summary.stage_times.size() / 2];
  out.forward = middle.forward.value, out.transfer = stages.empty() ? 0.0 : stages[stages.size() / 2].hop;
  out.forward_span = span_of(result, true), out.backward_span = span_of(result, false);
  out.backward_input = middle.backward_input.value, out.backward_weight = middle.backward_weight.value;
}

Outcome Predictor::outcome(const Model& model, const Cluster& cluster, const Strategy& strategy, bool stage_times,
                           const MachineProfile* profile) {
  const Strategy shorter = shortened(strategy);
  const bool longer = shorter.batch.global < strategy.batch.global;
  const std::string key = to_json(model) + to_json(shorter) + to_json(cluster) + (longer ? "longer" : "") +
                          (stage_times ? "stages" : "") + (profile ? profile->hash : "");
  Entry* entry = nullptr;
  {
    const std::lock_guard guard(door_);
    entry = &known_[key];
  }
  entry->filled.call([&] { fill(*entry, model, cluster, shorter, longer, stage_times, profile); });
  Outcome out = entry->outcome;
  if (!out.feasible) return out;
  const auto microbatches = static_cast<int>(strategy.batch.global / entry->samples_of_microbatch);
  const Estimate estimate = entry->replayed->estimate(microbatches);
  out.iteration = estimate.time.value + framework_preset(strategy.framework).host.per_step.value;
  out.next_iteration_gain = estimate.next_iteration_gain.value;
  return out;
}

// Rows of one run ask for its time, its rate and its memory. The key has what traits_of reads.
const FrameworkAllocation& Predictor::memory(const MeasuredCase& question, const Strategy& strategy) {
  const std::string text = to_json(question.model) + to_json(strategy) + to_json(question.cluster) + question.framework + " " +
                           question.flags + (question.memory == MemoryKind::Analytic ? " analytic" : "");
  Memory* entry = nullptr;
  {
    const std::lock_guard guard(door_);
    entry = &memories_[{text, question.offload}];
  }
  entry->filled.call([&] { entry->allocation = allocation_of(question, strategy); });
  return entry->allocation;
}

// The time of one layer: a stage of two layers less a stage of one.
LayerTimes Predictor::layer_times(const MeasuredCase& question, const Strategy& strategy, const MachineProfile* profile) {
  LayerTimes times;
  for (int layers = 1; layers <= 2; ++layers) {
    Model model = question.model;
    std::get<Transformer>(model.shape).layers = layers;
    Strategy s = strategy;
    s.dp = 1, s.pp = 1, s.virtual_stages = 1, s.batch.global = s.batch.micro, s.pipeline.layer_split = "";
    const Outcome o = outcome(model, question.cluster, s, true, profile);
    const double sign = layers == 2 ? 1 : -1;
    times.forward.value += sign * o.forward_span, times.backward.value += sign * o.backward_span;
  }
  return times;
}

static double layer_value(Quantity quantity, const LayerTimes& layer) {
  const double forward = layer.forward.value, backward = layer.backward.value;
  return 1e3 * (quantity == Quantity::LayerForward    ? forward
                : quantity == Quantity::LayerBackward ? backward
                                                      : forward + backward);
}

Prediction Predictor::predict(const MeasuredCase& question, const MachineProfile* profile) {
  Prediction best = {.candidates = static_cast<int>(question.candidates.size())};
  const bool times = question.candidates.size() > 1 || !is_memory(question.quantity);
  struct Choice {
    const Strategy* strategy = nullptr;
    Outcome outcome = {};
    const FrameworkAllocation* memory = nullptr;
    bool fits = false;
  } chosen;
  for (const Strategy& s : question.candidates) {
    Choice next = {.strategy = &s, .memory = &memory(question, s)};
    next.fits = fits(*next.memory, question);
    if (times || next.memory->ranks.empty()) {
      next.outcome = outcome(question.model, question.cluster, s, question.quantity >= Quantity::StageForward, profile);
      if (!next.outcome.feasible) {
        best.reason = next.outcome.reason;
        continue;
      }
    }
    if (is_memory(question.quantity) && next.memory->ranks.empty()) {
      best.reason = "the memory of " + question.framework + " for this strategy is not known";
      continue;
    }
    const bool better = !chosen.strategy || (next.fits && !chosen.fits) ||
                        (next.fits == chosen.fits && next.outcome.iteration < chosen.outcome.iteration);
    if (better) chosen = next;
  }
  if (!chosen.strategy) return best;
  best.reason.clear();
  best.fits = chosen.fits, best.filled = filled(*chosen.memory, question);
  best.chosen = static_cast<int>(chosen.strategy - question.candidates.data());
  if (is_layer(question.quantity))
    best.value = layer_value(question.quantity, layer_times(question, *chosen.strategy, profile));
  else if (is_memory(question.quantity))
    best.value = memory_value(question, *chosen.strategy, *chosen.memory);
  else
    best.value = time_value(question, *chosen.strategy, as_run(question, chosen.outcome));
  return best;
}

std::vector<PartShare> Predictor::shares(const MeasuredCase& question, int chosen) {
  const Strategy& strategy = question.candidates.at(static_cast<std::size_t>(chosen));
  auto answer = tuned_plan(question.model, question.cluster, shortened(strategy),
                           {.ignore_memory = true, .pack_by_order = false, .check = false});  // of a prediction that was made
  auto* lowered = std::get_if<Lowered>(&answer);
  if (!lowered) return {};
  const FrameworkPreset& preset = framework_preset(strategy.framework);
  const int microbatches = microbatches_of(*lowered, strategy);
  return part_shares(std::move(*lowered), question.cluster, preset, microbatches, preset.host.per_step);
}

}  // namespace foreshard
