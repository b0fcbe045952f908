#include "strategy/estimate/estimate_model.h"

#include "core/graph/op_graph_transformer.h"
#include "strategy/cost/framework_memory.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/cost/learned_factors.h"
#include "strategy/cost/profile_time.h"
#include "strategy/cost/runtime_policy.h"
#include "strategy/kernels/op_cost.h"
#include "strategy/resolve/resolve.h"
#include "strategy/schedule/schedule_read.h"

namespace foreshard {

using enum stage_kind::Kind;

// The strategy that is screened in place of `given`. Costs are measured on pipelines of a few stages, and runtime policies that keep
// parameters until the backward refuse pipelines. So the screen takes the other options that such a policy sets, but ignores the policy;
// plans that are refined follow it completely.
static Strategy screened_as(const Strategy& given) {
  const RuntimePolicy* policy = find_policy(given.policy);
  if (!policy || !policy->keeps()) return given;
  Strategy plain = given;
  plain.pp = 1;
  if (resolve_policy(plain)) return given;
  plain.pp = given.pp, plain.policy = Strategy{}.policy;
  return plain;
}

ScreenedModel::ScreenedModel(const Model& of, const Cluster& on, const Strategy& given, const MachineProfile* measured)
    : model(of), cluster(on), base(with_preset(of, screened_as(given))), profile(measured), types(state_types(base)) {
  if (!base.device_memory.framework) base.device_memory.framework = measured_outside(profile, cluster);
  const auto& transformer = std::get<Transformer>(model.shape);
  layers = transformer.layers;
  tied = shares_embedding(transformer);
  adam_per_element = (update_time(200'000'000) - update_time(100'000'000)) / 1e8;
  if (!base.pipeline.order.empty() && !chooses_order(base)) listed_in_flight = peak_in_flight(parse_order(base.pipeline.order));
  launch = gpu_of(cluster, cluster.nodes.front().shape.gpu).launch_overhead.value;
}

double ScreenedModel::update_time(std::int64_t elements) const {
  const Gpu& gpu = gpu_of(cluster, cluster.nodes.front().shape.gpu);
  const double each = static_cast<double>(size_of(types.grad).value + size_of(types.param).value +
                                          (types.master ? 2 * size_of(types.state).value : size_of(types.param).value)) +
                      (base.optimizer.kind == OptimizerKind::Adam ? 4.0
                       : base.optimizer.momentum > 0              ? 2.0
                                                                  : 0.0) *
                          static_cast<double>(size_of(types.state).value);
  const Compute update{.op = ops::Adam{},
                       .phase = Phase::Update,
                       .shapes = {{{elements}, types.state}},
                       .flops = {ops::Adam::flops_per_element * static_cast<double>(elements)},
                       .traffic = {static_cast<std::int64_t>(each * static_cast<double>(elements))}};
  const bool about = profile && profile->device == gpu.name;
  if (about)
    if (const auto measured = profiled_time(*profile, update)) return measured->value;
  const bool learned = about && profile->learned;
  const PartShape shape{.part = CostPart::Update, .words = {framework_preset(base.framework).name}};
  return op_time(gpu, update).value * (learned ? LearnedFactors(*profile->learned).factor(shape) : 1.0);
}

double ScreenedModel::tied_elements(int tp) const {
  const auto& transformer = std::get<Transformer>(model.shape);
  const std::int64_t rows = padded_vocab(transformer, base.vocab_multiple * tp);
  return static_cast<double>(rows / tp) * static_cast<double>(transformer.hidden);
}

ScreenedModel::Layers ScreenedModel::layers_of(const Point& point) const {
  const std::array<int, 4> own = layers_by_kind(layers, point.pp * point.virtual_stages);
  return {static_cast<double>(own[0]), static_cast<double>(own[1]), static_cast<double>(own[2]), static_cast<double>(own[3])};
}

int ScreenedModel::thinner(const Point& point) const {
  const Layers own = layers_of(point);
  const int stages = point.pp * point.virtual_stages, between = stages - 2;
  if (layers % stages == 0 || between <= 0 || own[Middle] <= own[Last]) return 0;
  const double more = layers - own[First] - own[Last] - between * own[Last];
  return between - static_cast<int>(more);
}

}  // namespace foreshard
