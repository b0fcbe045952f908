#include "strategy/resolve/refuse_adapters.h"

#include <string>
#include <utility>

#include "strategy/cost/framework_preset.h"
#include "strategy/cost/runtime_policy.h"

namespace foreshard {

std::optional<Infeasible> refuse_adapters(const Model& model, const Strategy& s) {
  if (!s.optimizer.lora.any()) return {};
  const auto refuse = [](std::string reason, std::string other = "--lora-rank 0") {
    return Infeasible{.reason = std::move(reason), .would_help = {std::move(other)}};
  };
  const auto* t = std::get_if<Transformer>(&model.shape);
  if (!t) return refuse(model.name + " is a layer list: adapters are for linear layers of transformers");
  if (t->block.experts.count > 0) return refuse(model.name + " has experts: adapters are for dense transformers");
  if (t->attention.latent.key_value_rank > 0)
    return refuse(model.name + " has latent attention: adapters are for projections of queries, keys and values");
  if (t->attention.sinks) return refuse(model.name + " has attention sinks: adapters are for attention without them");
  if (t->block.mtp_modules > 0)
    return refuse(model.name + " predicts several tokens: adapters are for models that predict one");
  if (!s.stages.empty()) return refuse("stages with degrees of their own have no adapters", "--dp, --tp and --pp");
  if (s.communication.asynchronous)
    return refuse("an asynchronous server sends all parameters, not those of adapters alone", "--asynchronous=false");
  if (framework_preset(s.framework).memory.step)
    return refuse("framework " + s.framework + " is known as it trains all parameters: what it allocates for adapters is not",
                  "--framework foreshard");
  if (const RuntimePolicy* policy = policy_of(s); policy && policy->layers)
    return refuse("policy " + policy->name + " moves layers whose parameters are all trained, not adapters", "--policy none");
  return {};
}

std::optional<Infeasible> refuse_packing(const Model& model, const Strategy& s) {
  if (s.batch.packed == 0) return {};
  const auto refuse = [](std::string reason, std::string other = "--packed-length 0") {
    return Infeasible{.reason = std::move(reason), .would_help = {std::move(other)}};
  };
  const auto* t = std::get_if<Transformer>(&model.shape);
  if (!t) return refuse(model.name + " is a layer list: it has no sequences that could be packed");
  if (s.batch.packed > s.batch.seq)
    return refuse("packed sequences of " + std::to_string(s.batch.packed) + " tokens are longer than a row of " +
                      std::to_string(s.batch.seq),
                  "--packed-length " + std::to_string(s.batch.seq));
  if (!t->causal || t->positions == PositionKind::Learned)
    return refuse(model.name +
                  " has learned positions or sees tokens on both sides: sequences are packed in causal models with others");
  if (t->attention.window > 0 || t->attention.chunk > 0)
    return refuse(model.name + " attends to a window or chunks: sequences are packed where it attends to all tokens before");
  if (s.attention == AttentionKernel::Unfused) return refuse("packed sequences need one attention kernel", "--attention flash");
  if (s.cp > 1) return refuse("packed sequences are not cut by cp " + std::to_string(s.cp), "--cp 1");
  return {};
}

}  // namespace foreshard
