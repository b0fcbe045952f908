#include "strategy/frameworks/replayed_rank.h"

#include <algorithm>

#include "core/base/error.h"
#include "strategy/frameworks/layer_bytes.h"

namespace foreshard {

namespace {

double element_bytes(DType type) { return static_cast<double>(size_of(type).value); }

class RankReader {
 public:
  RankReader(const Transformer& model, const Strategy& strategy, const StepMemory& step, const OpGraph& graph,
             const StageLayout& layout)
      : model_(model), strategy_(strategy), step_(step), graph_(graph), kept_(activation_policy(strategy, graph, layout)) {
    tokens_ = static_cast<double>(strategy.batch.micro) * static_cast<double>(strategy.batch.seq) / strategy.cp;
  }

  ReplayedLayer layer(int index, bool embeds) const {
    const OpGraph::Layer& layer = graph_.layers[static_cast<std::size_t>(index)];
    const LayerGraph& kind = graph_.kinds[static_cast<std::size_t>(layer.kind)];
    ReplayedLayer out;
    out.in_block = layer.counted;
    for (const Parameter& parameter : kind.parameters)
      if (!(parameter.tied && embeds && kind.kind != "embedding")) out.tensors.push_back(parameter_elements(parameter));
    if (kind.output >= 0) out.output = size(kind.values[static_cast<std::size_t>(kind.output)]);
    out.logits = logits(kind);
    if (out.logits > 0) out.kept = sizes(step_.kept_head);
    if (layer.counted) describe_block(kind, index, out);
    return out;
  }
  // On all tensor-parallel ranks: undivided.
  std::vector<double> gathered(const std::vector<TensorWidth>& widths) const {
    std::vector<double> all;
    if (strategy_.tp > 1)
      for (const TensorWidth& width : widths) all.push_back(tokens_ * on_all_ranks(width));
    return all;
  }

 private:
  void describe_block(const LayerGraph& kind, int index, ReplayedLayer& out) const {
    const int row = kept_.row_of(index);
    const bool selective = row >= 0 && !kept_.rows[static_cast<std::size_t>(row)].redone.whole;
    out.recomputed = row >= 0 && !selective;
    out.kept = sizes(out.recomputed ? step_.kept_full : selective ? step_.kept_selective : step_.kept);
    if (out.recomputed) out.made = sizes(step_.kept);
    out.forward = sizes({{.ffn = 2}, {.ffn = 2}});
    out.backward = sizes({{.ffn = 2}, {.ffn = 2}, {.hidden = 2}});
    out.held = gathered(step_.held_by_collectives);
    if (!is_code(strategy_.precision)) return;
    for (const Operator& op : kind.operators)
      if (is_weight_product(op))
        out.narrow += parameter_elements(kind.parameters[static_cast<std::size_t>(op.weights.front())]);
  }
  std::vector<double> sizes(const std::vector<TensorWidth>& widths) const {
    std::vector<double> all;
    for (const TensorWidth& width : widths) all.push_back(tokens_ * on_this_rank(width));
    return all;
  }
  double on_this_rank(const TensorWidth& width) const {
    const TensorWidth whole = {.hidden = width.hidden};
    const double split = on_all_ranks(width) - on_all_ranks(whole);
    return on_all_ranks(whole) / (strategy_.sequence_parallel ? strategy_.tp : 1) + split / strategy_.tp;
  }
  double on_all_ranks(const TensorWidth& width) const {
    const auto head = static_cast<double>(model_.head_dim);
    return width.hidden * static_cast<double>(model_.hidden) + width.query * model_.heads * head +
           width.keys * model_.kv_heads * head + width.ffn * static_cast<double>(model_.ffn_hidden) +
           width.heads * model_.heads;
  }
  static double logits(const LayerGraph& kind) {
    for (const Operator& op : kind.operators)
      if (is<ops::CrossEntropy>(op.op) && !op.communication && !op.inputs.empty() && op.inputs.front() >= 0)
        return count(kind.values[static_cast<std::size_t>(op.inputs.front())]);
    return 0;
  }

  const Transformer& model_;
  const Strategy& strategy_;
  const StepMemory& step_;
  const OpGraph& graph_;
  ActivationPolicy kept_;
  double tokens_ = 0;
};

}  // namespace

ReplayedRank replayed_rank(const Transformer& model, const Strategy& strategy, const MemoryTraits& traits, const OpGraph& graph,
                           const StageLayout& layout, int rank, const std::vector<ScheduleOp>& list) {
  FS_ASSERT(traits.step.has_value());
  const RankReader reader(model, strategy, *traits.step, graph, layout);
  const StateTypes types = state_types(strategy);
  const int dp = strategy.zero.group > 0 ? strategy.zero.group : strategy.dp;
  ReplayedRank out = {.list = list,
                      .microbatches = strategy.batch.global / (strategy.batch.micro * strategy.dp),
                      .pipeline = strategy.pp > 1,
                      .splits_vocabulary = strategy.tp > 1,
                      .shards = strategy.zero.stage > 0 ? dp * strategy.cp : 1,
                      .replicas = strategy.dp * strategy.cp,
                      .zero = strategy.zero.stage,
                      .parameter = element_bytes(types.param),
                      .gradient = element_bytes(types.grad),
                      .compute = element_bytes(types.compute),
                      .statics = reader.gathered(traits.step->gather_buffers)};
  for (int chunk = 0; chunk < strategy.virtual_stages; ++chunk) {
    const int stage = stage_of(*strategy.pipeline.schedule, rank, chunk, strategy.pp);
    out.stages.push_back(stage);
    out.last_stage = out.last_stage || stage + 1 == layout.stages();
    bool embeds = false;
    std::vector<ReplayedLayer>& layers = out.chunks.emplace_back();
    for (int l = layout.first[static_cast<std::size_t>(stage)]; l < layout.first[static_cast<std::size_t>(stage) + 1]; ++l) {
      embeds =
          embeds || graph.kinds[static_cast<std::size_t>(graph.layers[static_cast<std::size_t>(l)].kind)].kind == "embedding";
      layers.push_back(reader.layer(l, embeds));
    }
  }
  return out;
}

MakeStepRules step_rules(const std::string& name) {
  if (name == "fully_shard") return fully_shard_rules;
  if (name == "nanotron") return nanotron_rules;
  return internevo_rules;
}

}  // namespace foreshard
