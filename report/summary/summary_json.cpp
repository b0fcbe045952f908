#include "report/summary/summary_json.h"

#include <algorithm>

#include "core/json/json.h"
#include "report/words/palette.h"

namespace foreshard {

namespace {

const char* text_of(Granularity granularity) {
  switch (granularity) {
    case Granularity::Op: return "op";
    case Granularity::Layer: return "layer";
    case Granularity::Stage: return "stage";
  }
  return "?";
}

const char* text_of(Folding folding) {
  switch (folding) {
    case Folding::None: return "none";
    case Folding::Tp: return "tp";
    case Folding::Full: return "full";
  }
  return "?";
}

class SummaryWriter {
 public:
  SummaryWriter(const Summary& summary, const SummaryOrigin& origin) : summary_(summary), origin_(origin) {}

  std::string write() {
    json_.begin_object();
    json_.field("model", origin_.model).field("cluster", origin_.cluster);
    of_plan("gpus", summary_.gpus), of_plan("stages", summary_.stages), of_plan("microbatches", summary_.microbatches);
    of_plan("parameters", summary_.parameters);
    json_.key("strategy");
    if (origin_.strategy_json.empty())
      json_.null();
    else
      json_.raw(origin_.strategy_json);
    feasibility();
    rates();
    shares();
    stages();
    memory();
    json_.key("framework_allocation");
    if (origin_.framework_allocation_json.empty())
      json_.null();
    else
      json_.raw(origin_.framework_allocation_json);
    if (!origin_.caching_allocator_json.empty()) json_.key("caching_allocator").raw(origin_.caching_allocator_json);
    links();
    optional("cost_per_million_tokens", summary_.cost_per_million_tokens);
    optional("energy_per_million_tokens_j", summary_.energy_per_million_tokens_j);
    simulation();
    return json_.end_object().text();
  }

 private:
  bool lowered() const { return summary_.gpus > 0; }
  bool played() const { return summary_.iteration_time.value > 0; }

  void optional(const char* key, const std::optional<double>& number) {
    json_.key(key);
    if (number)
      json_.value(*number);
    else
      json_.null();
  }
  // Writes a number that needs a plan.
  template <class Number>
  void of_plan(const char* key, Number number) {
    json_.key(key);
    if (lowered())
      json_.value(number);
    else
      json_.null();
  }
  // Writes a number that needs a replay or a run.
  void measured(const char* key, double number) { optional(key, played() ? std::optional(number) : std::nullopt); }

  void feasibility() {
    json_.field("feasible", summary_.feasible).key("infeasible_reason");
    if (summary_.infeasible_reason.empty())
      json_.null();
    else
      json_.value(summary_.infeasible_reason);
    const Verdict& verdict = summary_.verdict;
    json_.key("verdict").begin_object().field("kind", name_of(verdict.kind)).field("probability", verdict.probability);
    json_.field("holder", verdict.holder).field("needs_bytes", verdict.needs.value);
    json_.field("capacity_bytes", verdict.capacity.value).field("reason", verdict.reason).field("beneath", verdict.beneath);
    json_.end_object();
    json_.key("would_help").begin_array();
    for (const std::string& change : summary_.would_help) json_.value(change);
    json_.end_array();
  }

  void prediction_interval() {
    json_.key("prediction_interval");
    if (!played() || !summary_.prediction_interval) {
      json_.null();
      return;
    }
    const PredictionInterval& interval = *summary_.prediction_interval;
    json_.begin_object().field("low_s", interval.low.value).field("high_s", interval.high.value).field("confidence", 0.9);
    json_.field("rows", interval.rows).field("extrapolated", interval.extrapolated).field("basis", interval.basis);
    json_.key("rates_of").begin_line_array();
    for (const std::string& gpu : interval.rates_of) json_.value(gpu);
    json_.end_array().field("rates_spread", interval.rates_spread).end_object();
  }

  void rates() {
    measured("iteration_time_s", summary_.iteration_time.value);
    prediction_interval();
    measured("tokens_per_s", summary_.tokens_per_s);
    measured("tokens_per_s_per_gpu", summary_.tokens_per_s_per_gpu);
    measured("samples_per_s", summary_.samples_per_s);
    measured("model_flops_utilization", summary_.flops.model_utilization);
    measured("masked_flops_utilization", summary_.flops.masked_utilization);
    measured("hardware_flops_utilization", summary_.flops.hardware_utilization);
    measured("masked_hardware_flops_utilization", summary_.flops.masked_hardware_utilization);
    json_.key("flops").begin_object();
    of_plan("model", summary_.flops.model.value), of_plan("hardware", summary_.flops.hardware.value);
    json_.field("convention",
                "per iteration, all GPUs; model: forward and backward without recomputation, attention not halved "
                "for the causal mask; utilization against the dense peak");
    json_.end_object();
  }

  void causes(const std::vector<double>& by_cause) {
    json_.begin_object();
    for (std::size_t c = 0; c < by_cause.size(); ++c) json_.field(name_of(static_cast<BubbleCause>(c)), by_cause[c]);
    json_.end_object();
  }

  void shares() {
    measured("bubble_fraction", summary_.bubble.fraction);
    json_.key("bubble_by_cause");
    causes(summary_.bubble.by_cause);
    json_.key("bubble_per_stage").begin_line_array();
    for (const double share : summary_.bubble.per_stage) json_.value(share);
    json_.end_array().key("bubble_by_cause_per_stage").begin_array();
    for (const auto& by_cause : summary_.bubble.by_cause_per_stage) causes(by_cause);
    json_.end_array();
    measured("exposed_communication_fraction", summary_.communication.exposed);
    measured("hidden_communication_fraction", summary_.communication.hidden);
  }

  void stages() {
    json_.key("stage_times").begin_array();
    for (const StageTimes& times : summary_.stage_times) {
      json_.begin_object().field("forward_s", times.forward.value).field("backward_input_s", times.backward_input.value);
      json_.field("backward_weight_s", times.backward_weight.value).field("p2p_s", times.p2p.value).end_object();
    }
    json_.end_array();
  }

  Bytes largest(Bytes StageMemory::*member) const {
    Bytes most = {};
    for (const StageMemory& row : summary_.memory) most = std::max(most, row.*member);
    return most;
  }
  void per_stage(const char* key, Bytes StageMemory::*member) {
    json_.key(key).begin_line_array();
    for (const StageMemory& row : summary_.memory) json_.value((row.*member).value);
    json_.end_array();
  }

  void memory() {
    json_.key("peak_memory_bytes").begin_object();
    const Bytes live = largest(&StageMemory::live_peak);  // 0: not replayed
    const auto peak = [&](const char* key) { live > Bytes{} ? json_.field(key, live.value) : json_.key(key).null(); };
    peak("max");
    if (live > Bytes{}) per_stage("per_stage", &StageMemory::live_peak);
    peak("allocated");
    of_plan("with_framework", largest(&StageMemory::with_framework).value);
    of_plan("reserved", largest(&StageMemory::reserved).value);
    if (largest(&StageMemory::order_bound) > Bytes{}) per_stage("order_bound_per_stage", &StageMemory::order_bound);
    per_stage("arena_per_stage", &StageMemory::arena);
    json_.end_object();
    json_.key("static_bytes").begin_object();
    of_plan("max", largest(&StageMemory::statics).value);
    per_stage("per_stage", &StageMemory::statics);
    json_.end_object();
    of_plan("capacity_bytes", summary_.fit.capacity.value), of_plan("reserve_bytes", summary_.fit.reserve.value);
    of_plan("framework_bytes", summary_.fit.framework.value), of_plan("fits_margin_bytes", summary_.fit.margin.value);
    json_.key("memory_by_category").begin_array();
    for (const StageMemory& row : summary_.memory) {
      if (row.live_peak == Bytes{}) continue;
      json_.begin_object().field("role", row.role);
      for (std::size_t c = 0; c < row.peak.size(); ++c) json_.field(name_of(static_cast<Category>(c)), row.peak[c].value);
      json_.end_object();
    }
    json_.end_array();
  }

  void links() {
    json_.key("link_utilization").begin_array();
    for (const LinkUtilization& link : summary_.links)
      json_.begin_object()
          .field("name", link.name)
          .field("links", link.links)
          .field("utilization", link.utilization)
          .end_object();
    json_.end_array();
  }

  void simulation() {
    json_.key("simulation").begin_object();
    json_.field("wall_time_s", origin_.wall_time_s).field("makespan_s", origin_.makespan_s);
    json_.field("clock", origin_.clock).field("simgrid_events", origin_.simgrid_events);
    json_.field("granularity", text_of(origin_.granularity)).field("folding", text_of(origin_.folding)).end_object();
  }

  const Summary& summary_;
  const SummaryOrigin& origin_;
  JsonWriter json_ = JsonWriter(2);
};

}  // namespace

std::string summary_json(const Summary& summary, const SummaryOrigin& origin) { return SummaryWriter(summary, origin).write(); }

}  // namespace foreshard
