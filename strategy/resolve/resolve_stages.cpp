// Checks a strategy that states its stages one by one (--stages), and derives the fields that other strategies state for all stages.
#include <algorithm>
#include <numeric>
#include <string>

#include "core/base/count_text.h"
#include "strategy/resolve/resolve.h"

namespace foreshard {

namespace {

using Refusal = std::optional<Infeasible>;

// Refuses fields that would hold for all stages alike.
Refusal refuse_beside(const Strategy& s) {
  const auto count = static_cast<int>(s.stages.size());
  const auto each = [](const std::string& what) {
    return Infeasible{.reason = "stages that are said one by one have degrees of their own: found " + what + " beside them",
                      .would_help = {"leave out " + what.substr(0, what.find(' '))}};
  };
  if (s.tp != 1) return each("tp " + std::to_string(s.tp));
  if (s.dp > 1) return each("dp " + std::to_string(s.dp));
  if (s.pp != 1 && s.pp != count) return each("pp " + std::to_string(s.pp));
  const auto none = [](const std::string& what, const std::string& instead) {
    return Infeasible{.reason = "stages that are said one by one cannot have " + what, .would_help = {instead}};
  };
  if (s.framework != Strategy{}.framework) return none("framework " + s.framework, "--framework foreshard");
  if (s.cp != 1) return none("context parallelism", "--cp 1");
  if (s.virtual_stages != 1) return none("virtual stages", "--virtual-stages 1");
  if (s.communication.gradients.any() || s.communication.activations.any())
    return none("compressed communication", "--compress-gradients none --compress-activations none");
  if (s.communication.transfers == Transfers::Split) return none("split transfers", "--transfers whole");
  if (s.sequence_parallel) return none("sequence parallelism", "--set sequence_parallel=false");
  if (s.zero.stage != 0) return none("ZeRO " + std::to_string(s.zero.stage), "--zero 0");
  if (*s.optimizer.clip_norm > 0) return none("clipping by the global norm", "--clip-norm 0");
  if (s.optimizer.loss_scale == 0) return none("a dynamic loss scale", "--loss-scale 1");
  if (s.pipeline.schedule && *s.pipeline.schedule != Schedule::GPipe && *s.pipeline.schedule != Schedule::OneFOneB)
    return none(std::string("schedule ") + name_of(*s.pipeline.schedule), "--schedule 1f1b");
  if (s.recompute.kind >= RecomputeKind::Rotor || s.recompute.layers < 0 ||
      (s.recompute.kind == RecomputeKind::Each && s.recompute.each.empty()))
    return none("recompute " + to_text(s.recompute), "--recompute full, selective or layers:A-B");
  if (!s.placement.empty() && s.placement != default_rank_order())
    return none("another placement than stage by stage", "no --placement");
  return {};
}

Refusal refuse_ranks(const Cluster& cluster, const Strategy& s) {
  std::int64_t ranks = 0;
  for (const StageDegrees& stage : s.stages) ranks += std::int64_t{1} * stage.dp * stage.tp;
  if (ranks > gpu_count(cluster))
    return Infeasible{.reason = "stages " + to_text(s.stages) + " are " + counted(ranks, "rank") + ", but " + cluster.name +
                                " has " + counted(gpu_count(cluster), "GPU"),
                      .would_help = {"fewer replicas or tensor ranks", "a larger cluster"}};
  std::vector<int> degrees;
  for (const StageDegrees& stage : s.stages) degrees.push_back(stage.tp);
  std::sort(degrees.begin(), degrees.end());
  for (std::size_t i = 1; i < degrees.size(); ++i)
    if (degrees[i] % degrees[i - 1] != 0)  // shards of one stage would straddle those of another
      return Infeasible{.reason = "tensor-parallel degree " + std::to_string(degrees[i - 1]) +
                                  " of one stage does not divide " + std::to_string(degrees[i]) + " of another",
                        .would_help = {"degrees of which each divides the next larger one, such as 1, 2 and 4"}};
  return {};
}

Refusal refuse_model(const Model& model, const Strategy& s) {
  const auto* transformer = std::get_if<Transformer>(&model.shape);
  if (!transformer && widest_tp(s) > 1)
    return Infeasible{.reason = model.name + " is a layer list: its stages cannot have tp " + std::to_string(widest_tp(s)),
                      .would_help = {"tp 1 in every stage"}};
  const int first = s.stages.front().tp, last = s.stages.back().tp;
  if (transformer && shares_embedding(*transformer) && first != last)
    return Infeasible{.reason = "the first stage has tp " + std::to_string(first) + ", the last one tp " +
                                std::to_string(last) + ": the embedding that they share is cut in as many parts on both",
                      .would_help = {"the same tp on the first and the last stage"}};
  return {};
}

Refusal resolve_turns(Strategy& s) {
  std::int64_t together = 1;
  for (const StageDegrees& stage : s.stages) together = std::lcm(together, std::int64_t{stage.dp});
  if (s.batch.global == 0) s.batch.global = s.batch.micro * together;
  if (s.batch.global % s.batch.micro != 0) return {};  // resolve_batch refuses it
  const std::int64_t microbatches = s.batch.global / s.batch.micro;
  for (const StageDegrees& stage : s.stages)
    if (microbatches % stage.dp != 0)
      return Infeasible{.reason = counted(microbatches, "micro-batch", "micro-batches") + " cannot be dealt out to " +
                                  counted(stage.dp, "replica") + " of a stage evenly",
                        .would_help = {"a global batch that is a multiple of " + std::to_string(s.batch.micro * together)}};
  return {};
}

// "12,12": as --layer-split has it.
std::string layers_of(const std::vector<StageDegrees>& stages) {
  std::string split;
  for (const StageDegrees& stage : stages) split += (split.empty() ? "" : ",") + std::to_string(stage.layers);
  return split;
}

}  // namespace

Strategy with_common_degrees(Strategy s) {
  const auto equal = [&](const StageDegrees& stage) {
    return stage.dp == s.stages.front().dp && stage.tp == s.stages.front().tp;
  };
  const auto count = static_cast<int>(s.stages.size());
  const bool beside = s.tp != 1 || s.dp > 1 || (s.pp != 1 && s.pp != count) || !s.pipeline.layer_split.empty();
  if (count == 0 || beside || !std::ranges::all_of(s.stages, equal)) return s;
  s.pipeline.layer_split = layers_of(s.stages);
  s.dp = s.stages.front().dp, s.tp = s.stages.front().tp, s.pp = count;
  s.stages.clear();
  return s;
}

Refusal resolve_stages(const Model& model, const Cluster& cluster, Strategy& s) {
  if (auto refused = refuse_beside(s)) return refused;
  if (auto refused = refuse_ranks(cluster, s)) return refused;
  if (auto refused = refuse_model(model, s)) return refused;
  if (auto refused = resolve_turns(s)) return refused;
  const std::string split = layers_of(s.stages);
  if (!s.pipeline.layer_split.empty() && s.pipeline.layer_split != split)
    return Infeasible{.reason = "layer split \"" + s.pipeline.layer_split + "\" beside stages of " + split + " layers",
                      .would_help = {"leave out --layer-split"}};
  s.pipeline.layer_split = split;
  s.pp = static_cast<int>(s.stages.size());
  s.dp = 1;
  return {};
}

}  // namespace foreshard
