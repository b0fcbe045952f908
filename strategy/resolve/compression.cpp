#include "strategy/resolve/compression.h"

#include <algorithm>

#include "core/strategy/compression.h"
#include "strategy/resolve/layout.h"
#include "strategy/resolve/tables.h"
#include "strategy/schedule/schedule.h"

namespace foreshard {

namespace {

using Refusal = std::optional<Infeasible>;

ops::CodeForm segments_of(const Compression& choice) {
  return {.code = ops::Code::Segments, .bits = choice.bits, .segments = choice.segments};
}

// Codes cannot be added, so collective algorithms that add numbers on the way are refused: codes are sent by an all-to-all or a ring.
Refusal refuse_algorithm(const Strategy& s, const std::string& how) {
  const Algorithm algorithm = s.communication.algorithm.value_or(Algorithm::Ring);
  if (algorithm == Algorithm::Ring) return {};
  return Infeasible{
      .reason = how + " sends codes, which cannot be added; --algorithm " + name_of(algorithm) + " adds numbers on the way",
      .would_help = {"--algorithm ring"}};
}

// With ZeRO: a rank has only a part of the gradients, of the optimizer states, or of both.
Refusal refuse_shards(const Strategy& s, const std::string& how) {
  if (s.zero.stage == 0 || s.zero.group * s.cp == 1) return {};
  const Compression& choice = s.communication.gradients;
  const std::string stage = std::to_string(s.zero.stage);
  if (s.zero.group < s.dp)
    return Infeasible{.reason = how + " is one sum over all replicas, which ZeRO " + stage + " in groups of " +
                                std::to_string(s.zero.group) + " makes in two",
                      .would_help = {"--zero-group " + std::to_string(s.dp), "--zero 0"}};
  if (choice.codec == Codec::OneBit && s.optimizer.kind == OptimizerKind::Adam)
    return Infeasible{.reason = "one-bit with Adam sends the whole first moment, of which ZeRO " + stage + " keeps a part",
                      .would_help = {"--zero 0", "--optimizer sgd", "--compress-gradients eight-bit"}};
  if (choice.codec == Codec::Dgc && cuts_of_zero(s.zero.stage).gradients)
    return Infeasible{
        .reason = how + " chooses among the gradients of a whole step, ZeRO " + stage + " sums each micro-batch by itself",
        .would_help = {"--zero 1", "--compress-gradients eight-bit"}};
  return {};
}

Refusal refuse_gradients(const Strategy& s) {
  const Compression& choice = s.communication.gradients;
  if (choice.codec == Codec::None) return {};
  const std::string how = "--compress-gradients " + to_text(choice);
  const auto refused = [](std::string reason, std::vector<std::string> instead) {
    return Infeasible{.reason = std::move(reason), .would_help = std::move(instead)};
  };
  if (s.framework != Strategy{}.framework)
    return refused("framework " + s.framework + " sends gradients as they are, not " + how, {"--compress-gradients none"});
  if (s.dp * s.cp * schedule_entry(*s.pipeline.schedule).routes == 1) return {};
  if (auto sharded = refuse_shards(s, how)) return sharded;
  if (s.offload.gradients != Space::Device || s.offload.parameters != Space::Device || s.offload.update_per_layer)
    return refused(how + " needs the gradients of all layers on the device until the update",
                   {"--offload-gradients device --offload-parameters device --update-per-layer=false"});
  if (auto other = refuse_algorithm(s, how)) return other;
  if (s.communication.order == SumOrder::Priority)
    return refused(how + " sends whole buckets as they are ready, --sum-order priority parts of them in another order",
                   {"--sum-order ready"});
  if (s.optimizer.loss_scale == 0)
    return refused(how + " keeps what it left out, and a dynamic loss scale changes what it means",
                   {"--loss-scale 1024", "--precision bf16"});
  const bool moment = choice.codec == Codec::OneBit && s.optimizer.kind == OptimizerKind::Adam;
  if (moment && choice.warm_up < 1)
    return refused("one-bit with Adam sends the first moment and freezes the second, which needs updates before it",
                   {"--compress-gradients one-bit:100", "--optimizer sgd"});
  if (moment && *s.optimizer.clip_norm > 0)
    return refused("one-bit with Adam sends moments, of which the norm for clipping is not that of the gradients",
                   {"--clip-norm 0"});
  if (moment && s.offload.optimizer != Space::Device)
    return refused("one-bit with Adam reads the first moment on the device", {"--offload-optimizer device"});
  return {};
}

Refusal refuse_activations(const Model& model, const Strategy& s) {
  const Compression& choice = s.communication.activations;
  if (!choice.any() || s.tp == 1) return {};
  const std::string how = "--compress-activations " + to_text(choice);
  if (s.framework != Strategy{}.framework)
    return Infeasible{.reason = "framework " + s.framework + " sums activations as they are, not " + how,
                      .would_help = {"--compress-activations none"}};
  const auto* transformer = std::get_if<Transformer>(&model.shape);
  if (choice.codec != Codec::None && s.sequence_parallel && transformer && transformer->hidden % 32 != 0)
    return Infeasible{
        .reason = "codes of a part of a sequence are whole 32-bit words, so that " + how +
                  " with sequence parallelism needs a hidden size that 32 divides: " + std::to_string(transformer->hidden),
        .would_help = {"--sequence-parallel=false"}};
  if (choice.codec != Codec::None)
    if (auto refused = refuse_algorithm(s, how)) return refused;
  if (choice.tokens == 0) return {};
  if (s.cp > 1)
    return Infeasible{.reason = how + " needs the attention of all queries on one rank, context parallelism splits them",
                      .would_help = {"--cp 1", "--compress-activations none"}};
  if (s.attention == AttentionKernel::Flash)
    return Infeasible{.reason = how + " needs attention probabilities, which a flash kernel does not write",
                      .would_help = {"--attention unfused"}};
  return {};
}

Refusal refuse_dispatch(const Strategy& s) {
  const Compression& choice = s.communication.dispatch;
  if (choice.codec == Codec::None || s.experts.ep == 1) return {};
  const std::string how = "--compress-dispatch " + to_text(choice);
  if (row_of(s.experts.dispatcher).gathers)
    return Infeasible{.reason = how + " sends rows of tokens in codes, --expert-dispatcher " + name_of(s.experts.dispatcher) +
                                " gathers tokens",
                      .would_help = {"--expert-dispatcher all-to-all", "--compress-dispatch none"}};
  return {};
}

}  // namespace

std::optional<Coding> gradient_coding(const Strategy& s) {
  const Compression& choice = s.communication.gradients;
  const bool adam = s.optimizer.kind == OptimizerKind::Adam;
  switch (choice.codec) {
    case Codec::None:
    case Codec::Float8: return {};
    case Codec::Dgc:
      return Coding{.encode = {.form = {.code = ops::Code::Largest},
                               .feedback = true,
                               .velocity = !adam && s.optimizer.momentum > 0,
                               .momentum = adam ? 0 : s.optimizer.momentum},
                    .kept = choice.kept,
                    .exchanged = false};
    case Codec::OneBit: return Coding{.encode = {.form = {.code = ops::Code::Signs}, .feedback = true}, .of_moment = adam};
    case Codec::EightBit: return Coding{.encode = {.form = {.code = ops::Code::EightBits}}};
    case Codec::Segmented: return Coding{.encode = {.form = segments_of(choice), .feedback = true}};
  }
  return {};
}

std::optional<Coding> activation_coding(const Strategy& s) {
  const Compression& choice = s.communication.activations;
  if (choice.codec != Codec::Segmented || s.tp == 1) return {};
  return Coding{.encode = {.form = segments_of(choice)}};
}

std::optional<Coding> dispatch_coding(const Strategy& s) {
  if (s.communication.dispatch.codec == Codec::None || s.experts.ep == 1) return {};
  const bool floats = s.communication.dispatch.codec == Codec::Float8;
  return Coding{.encode = {.form = {.code = floats ? ops::Code::Floats : ops::Code::EightBits}}};
}

bool reads_probabilities(const Strategy& s) { return s.communication.activations.tokens > 0 && s.tp > 1; }

std::optional<Infeasible> refuse_compression(const Model& model, const Strategy& strategy) {
  if (auto refused = refuse_gradients(strategy)) return refused;
  if (auto refused = refuse_dispatch(strategy)) return refused;
  return refuse_activations(model, strategy);
}

namespace {

// Whether each group of `group` replicas is on one node.
bool is_inside_nodes(const Strategy& s, int group, std::int64_t per_node) {
  const std::int64_t inner = group / s.cp;
  std::int64_t devices = 1, block = 1;  // of the kinds so far; consecutive ones among which a group is
  for (const std::optional<DenseKind>& kind : s.placement) {
    const bool adds = kind && (*kind == DenseKind::Context || *kind == DenseKind::Data);
    const std::int64_t size = !kind                         ? s.pp
                              : *kind == DenseKind::Tensor  ? s.tp
                              : *kind == DenseKind::Context ? s.cp
                              : *kind == DenseKind::Data    ? inner
                                                            : s.dp / inner;
    devices *= size;
    if (adds && size > 1) block = devices;
  }
  return per_node % block == 0;
}

Refusal refuse_compress_group(const Strategy& s) {
  const int group = s.communication.compress_group, replicas = s.dp * s.cp;
  const std::string how = "--compress-group " + std::to_string(group);
  const auto refused = [&](const std::string& why, const char* instead = "--compress-group 1") {
    return Infeasible{.reason = how + " " + why, .would_help = {instead}};
  };
  if (replicas % group != 0 || group % s.cp != 0)
    return refused("needs groups of whole replicas that divide dp x cp = " + std::to_string(replicas) +
                       (s.cp > 1 ? ", multiples of cp = " + std::to_string(s.cp) : ""),
                   "--compress-group 0");
  if (group == replicas) return refused("adds the gradients of all replicas as they are, nothing is left for codes");
  if (s.zero.stage > 0) return refused("adds whole gradients, of which ZeRO " + std::to_string(s.zero.stage) + " keeps parts");
  if (s.communication.asynchronous)
    return refused("adds the gradients of several replicas, asynchronous workers push theirs alone");
  if (gradient_coding(s)->of_moment) return refused("adds gradients, one-bit with Adam sends first moments");
  if (schedule_entry(*s.pipeline.schedule).routes > 1)
    return refused(std::string("adds the gradients of one rank, schedule ") + name_of(*s.pipeline.schedule) +
                   " has them on two");
  if (s.experts.ep * s.experts.etp > 1) return refused("makes groups of replicas, which do not say whose experts they hold");
  return {};
}

}  // namespace

std::optional<Infeasible> resolve_compress_group(const Cluster& cluster, Strategy& s) {
  int& group = s.communication.compress_group;
  if (!gradient_coding(s) || s.dp * s.cp * schedule_entry(*s.pipeline.schedule).routes == 1) {
    group = 0;
    return {};
  }
  if (group == 1) return {};
  if (group > 1) return refuse_compress_group(s);
  if (s.communication.asynchronous) {
    group = 1;
    return {};
  }
  std::int64_t per_node = INT64_MAX;
  for (const NodeGroup& nodes : cluster.nodes) per_node = std::min<std::int64_t>(per_node, nodes.shape.gpus);
  group = 1;
  if (std::int64_t{1} * s.tp * s.cp * s.pp * s.dp <= per_node) return {};  // all on one node
  for (int inner = s.dp; inner >= 1; --inner) {
    if (s.dp % inner != 0 || inner * s.cp == 1 || !is_inside_nodes(s, inner * s.cp, per_node)) continue;
    group = inner * s.cp;
    if (refuse_compress_group(s) || std::holds_alternative<Infeasible>(rank_layout(s))) group = 1;
    if (group > 1) return {};
  }
  return {};
}

}  // namespace foreshard
