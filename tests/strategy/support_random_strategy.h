// Small models and strategies drawn at random, for laws over plans.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "core/check/check_plan.h"
#include "tests/strategy/support_lower.h"

namespace foreshard {

class RandomChoice {
 public:
  explicit RandomChoice(std::uint32_t seed) : engine_(seed) {}
  int operator()(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  bool toss() { return (*this)(0, 1) == 1; }
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return *(choices.begin() + (*this)(0, static_cast<int>(choices.size()) - 1));
  }

 private:
  std::mt19937 engine_;
};

inline Model random_model(RandomChoice& random) {
  Transformer t = small_transformer(random.one_of({4, 6, 8, 12}));
  t.tied_embeddings = random(0, 1);
  if (random(0, 2) == 0) {  // Llama
    t.norm = NormKind::RmsNorm, t.activation = ActivationKind::SwiGlu, t.positions = PositionKind::Rope;
    t.kv_heads = 4, t.qkv_bias = t.projection_bias = t.mlp_bias = false;
  } else if (random(0, 3) == 0) {  // BERT
    t.causal = false, t.post_norm = t.embedding_norm = t.mlm_head = t.tied_embeddings = t.lm_head_bias = true;
    t.final_norm = false, t.token_types = 2;
  }
  return {.name = "random", .shape = t};
}

inline Strategy random_strategy(RandomChoice& random) {
  Strategy s{.dp = random.one_of({1, 2, 4}), .tp = random.one_of({1, 2, 4}), .pp = random.one_of({1, 2, 4})};
  s.virtual_stages = s.pp > 1 && random(0, 1) ? random.one_of({1, 2, 3}) : 1;
  s.cp = random(0, 4) == 0 ? 2 : 1;
  s.context = random.one_of({ContextKind::AllGather, ContextKind::Ring, ContextKind::AllToAll});
  s.sequence_parallel = random(0, 1);
  if (s.virtual_stages == 1 && random(0, 1)) s.pipeline.schedule = Schedule::GPipe;
  s.batch.micro = random(1, 2);
  s.batch.global = s.batch.micro * s.dp * s.pp * random(1, 3);
  s.zero.stage = random(0, 3);
  if (s.dp == 4 && random(0, 1)) s.zero.group = 2;
  s.recompute.kind =
      random.one_of({RecomputeKind::None, RecomputeKind::Selective, RecomputeKind::Full, RecomputeKind::Modules});
  if (s.recompute.kind == RecomputeKind::Full) s.recompute.layers = random(0, 1);
  if (s.recompute.kind == RecomputeKind::Modules)
    s.recompute.modules =
        random.one_of<std::vector<std::string>>({{"norm"}, {"activation", "norm"}, {"attention", "mlp"}, {"dropout"}});
  if (random(0, 2) == 0)
    s.recompute = random.one_of<Recompute>({{.kind = RecomputeKind::Revolve, .checkpoints = random(0, 3)},
                                            {.kind = RecomputeKind::Rotor},
                                            {.kind = RecomputeKind::Rotor, .budget = {random(1, 40) * 100'000}},
                                            {.kind = RecomputeKind::Graph, .budget = {random(1, 40) * 100'000}},
                                            {.kind = RecomputeKind::Full, .layers = -1}});
  s.precision = random.one_of({DType::BF16, DType::F32, DType::F64});
  s.dropout = random(0, 1) ? 0.1 : 0;
  if (random(0, 1)) s.attention = AttentionKernel::Unfused;
  s.optimizer.kind = random.one_of({OptimizerKind::Adam, OptimizerKind::Sgd});
  s.optimizer.clip_norm = random(0, 2) == 0 ? 1.0 : 0.0;
  s.optimizer.loss_scale = random.one_of({1.0, 0.0, 1024.0});
  s.communication.bucket = {random.one_of<std::int64_t>({0, 1000, 50'000, 400'000})};
  s.communication.overlap = Overlap{
      .gradients = random(0, 1) == 1, .parameters = random(0, 1) == 1, .p2p = random(0, 1) == 1, .tp = random(0, 1) == 1};
  return s;
}

// A strategy and what is wrong with its plan, for messages.
inline std::string describe(const Strategy& s, const std::vector<PlanDefect>& defects) {
  std::string text = to_json(s);
  for (const PlanDefect& defect : defects) text += "\n" + defect.rule + " at " + defect.where + ": " + defect.what;
  return text;
}

}  // namespace foreshard
