#include "strategy/framework_allocation.h"

#include <algorithm>
#include <map>
#include <utility>

#include "strategy/caching_allocator.h"
#include "strategy/framework_memory.h"
#include "strategy/framework_preset.h"
#include "strategy/keep_rule.h"
#include "strategy/lower.h"
#include "strategy/lowering.h"
#include "strategy/recompute_layers.h"

namespace foreshard {

namespace {

double size(const Value& value) { return static_cast<double>(value.bytes.value); }
double count(const Value& value) { return size(value) / static_cast<double>(size_of(value.dtype).value); }

double elements(const Parameter& parameter) {
  double product = 1;
  for (const std::int64_t dim : parameter.local) product *= static_cast<double>(dim);
  return product;
}

// One layer and micro-batch.
struct LayerBytes {
  double kept = 0;  // from its forward to its backward
  double left = 0;  // of the products with weights: inputs and gradients of the results, what a weight gradient put off needs
  double backward = 0;  // beside that, while its backward runs: values made again, gradients
  double loss = 0;      // of the head: beside everything that is kept, when the loss is computed
  double held = 0;      // of the head: and while the layers before it run backward
  double deferred = 0;  // of the head: its input and the gradient of its result
};

class LayerMeasure {
 public:
  LayerMeasure(const LayerGraph& layer, const Strategy& strategy, const MemoryTraits& traits, bool copies, bool full)
      : layer_(layer), strategy_(strategy), traits_(traits), copies_(copies) {
    const KeepRule plain = keep_rule(layer, {}, false);
    const KeepRule rule = keep_rule(layer, strategy.recompute, full);
    bytes_.kept = stored(rule) + (full && rule.whole_layer ? 0 : extras(rule));
    bytes_.left = left();
    bytes_.backward = gradients();
    if (rule.whole_layer) bytes_.backward += stored(plain) + extras(plain) - stored(rule);
    for (const Operator& op : layer.operators)
      if (op.op == Op::CrossEntropy && !op.communication && op.inputs.front() >= 0) add_loss(op);
    bytes_.deferred = deferred();
  }
  LayerBytes take() const { return bytes_; }

 private:
  const Value& value(int index) const { return layer_.values[static_cast<std::size_t>(index)]; }
  bool of_loss(std::size_t index) const {
    for (const Operator& op : layer_.operators)
      if (op.op == Op::CrossEntropy && !op.communication)
        for (const int made : op.outputs)
          if (static_cast<std::size_t>(made) == index) return true;
    return false;
  }
  double stored(const KeepRule& rule) const {
    double sum = 0;
    for (std::size_t v = 0; v < rule.stored.size(); ++v)
      if (rule.stored[v] && !of_loss(v)) sum += kept_size(rule, v);
    return sum;
  }

  // A value that products read: the 8-bit copy that they keep, and the value itself where something else needs it.
  double kept_size(const KeepRule& rule, std::size_t kept) const {
    const double whole = size(layer_.values[kept]);
    if (strategy_.precision != DType::F8 || !traits_.fp8_inputs || layer_.kind == "head") return whole;
    bool product = false, other = false;
    for (std::size_t i = 0; i < layer_.operators.size(); ++i) {
      const Operator& op = layer_.operators[i];
      for (const int saved : op.saved)
        if (real(rule, saved) == kept) (is_product(op) ? product : other) = true;
      if (!rule.redone[i] || op.inputs.empty() || real(rule, op.inputs[0]) != kept) continue;
      if (op.communication && !op.outputs.empty())  // gathered again: what is kept is a part of a product's input
        product = true;
      else
        other = true;
    }
    if (!product) return whole;
    return (other ? whole : 0) + count(layer_.values[kept]) * static_cast<double>(size_of(DType::F8).value);
  }
  static std::size_t real(const KeepRule& rule, int value) {
    return static_cast<std::size_t>(rule.same_as[static_cast<std::size_t>(value)]);
  }
  static bool is_product(const Operator& op) { return !op.communication && op.op == Op::MatMul && !op.weights.empty(); }

  // What the framework's way of running an operator keeps beside the values of the graph, unless the operator runs again.
  double extras(const KeepRule& rule) const {
    double sum = 0;
    for (std::size_t i = 0; i < layer_.operators.size(); ++i) {
      const Operator& op = layer_.operators[i];
      if (op.communication || rule.redone[i]) continue;
      if (op.op == Op::Norm) sum += traits_.norm_bytes * count(value(op.inputs[0]));
      if (op.op == Op::Activation) sum += traits_.activation_bytes * count(value(op.outputs[0]));
      if (op.op == Op::Softmax) sum += traits_.score_bytes * count(value(op.outputs[0]));
      if (op.op == Op::Attention && copies_ && strategy_.micro_batch > 1) sum += size(value(op.outputs[0]));
    }
    return sum;
  }

  // 32 s b h per layer of GPT (Qi et al. 2024, table 1: W): 14 of inputs, 18 of gradients.
  double left() const {
    std::vector<char> seen(layer_.values.size(), 0);
    double sum = 0;
    for (const Operator& op : layer_.operators) {
      if (!is_product(op)) continue;
      for (const auto* list : {&op.saved, &op.outputs})
        for (const int v : *list)
          if (!std::exchange(seen[static_cast<std::size_t>(v)], 1)) sum += size(value(v));
    }
    return sum;
  }

  // The operator whose gradients, those of what it made and of what it read, take most; and the gradient of the residual stream.
  double gradients() const {
    double most = 0;
    for (const Operator& op : layer_.operators) {
      double sum = 0;
      for (const auto* list : {&op.inputs, &op.outputs})
        for (const int v : *list)
          if (value(v).needs_grad) sum += size(value(v)) / (is_logits(v) ? parts() : 1);
      if (op.op == Op::Softmax) sum = std::max(sum, traits_.score_scratch * count(value(op.outputs[0])));
      if (op.op != Op::CrossEntropy) most = std::max(most, sum);
    }
    return most + (layer_.output >= 0 ? size(value(layer_.output)) : 0);
  }

  bool is_logits(int v) const {
    return std::any_of(layer_.operators.begin(), layer_.operators.end(), [&](const Operator& op) {
      return op.op == Op::CrossEntropy && !op.communication && !op.inputs.empty() && op.inputs[0] == v;
    });
  }
  double parts() const {
    if (!traits_.logit_parts_by_width) return traits_.logit_parts;
    for (const Operator& op : layer_.operators)
      if (is_product(op) && is_logits(op.outputs[0]))
        return std::max(1.0, static_cast<double>(op.shapes[0].dims[2]) / static_cast<double>(op.shapes[0].dims[3]));
    return 1;
  }
  double deferred() const {
    for (const Operator& op : layer_.operators)
      if (is_product(op) && is_logits(op.outputs[0])) return size(value(op.inputs[0])) + size(value(op.outputs[0]));
    return 0;
  }

  void add_loss(const Operator& op) {
    const Value& logits = value(op.inputs[0]);
    if (logits.name.find("vocab") == std::string::npos) return;
    const double ranks = strategy_.tp;
    const bool gathers = ranks > 1 && traits_.gathered_logit_bytes > 0;
    bytes_.loss = std::max(
        bytes_.loss,
        gathers ? (traits_.gathered_logit_bytes * ranks + static_cast<double>(size_of(logits.dtype).value)) * count(logits)
                : traits_.logit_bytes / parts() * count(logits));
    bytes_.held = traits_.held_logit_bytes * (traits_.gathered_logit_bytes > 0 ? ranks : 1) * count(logits);
  }

  const LayerGraph& layer_;
  const Strategy& strategy_;
  const MemoryTraits& traits_;
  bool copies_;
  LayerBytes bytes_ = {};
};

struct StageBytes {
  double parameters = 0;             // elements
  std::vector<double> tensors = {};  // elements of each parameter
  double largest_layer = 0;          // elements
  double kept = 0, counted = 0;      // of one micro-batch; counted: by transformer layers
  double left = 0;                   // from its input to its weight gradients
  double backward = 0, loss = 0, held = 0, deferred = 0;
  double boundary = 0;  // what it sends on
};

class Allocation {
 public:
  Allocation(const Cluster& cluster, const Strategy& strategy, const MemoryTraits& traits, const OpGraph& graph,
             const StageLayout& layout)
      : strategy_(strategy), traits_(traits), graph_(graph), layout_(layout), types_(types_of(strategy)) {
    architecture_ = gpu_of(cluster, cluster.nodes.front().shape.gpu).architecture;
    copies_ = std::find(traits.attention_copies.begin(), traits.attention_copies.end(), architecture_) !=
              traits.attention_copies.end();
    for (int stage = 0; stage < layout.stages(); ++stage) stages_.push_back(stage_bytes(stage));
  }

  RankAllocation rank(int index, const std::vector<ScheduleOp>& list) const {
    RankAllocation out;
    const Shares share = shares();
    double states = 0, transient = 0, heads = 0;
    for (int chunk = 0; chunk < strategy_.virtual_stages; ++chunk) {
      const StageBytes& stage = at(stage_of(*strategy_.schedule, index, chunk, strategy_.pp));
      states += stage.parameters * (share.parameter + share.gradient + share.state * share.states);
      out.statics += stage.parameters * share.left;
      transient = std::max(transient, stage.largest_layer * share.gathered);
      heads += stage.deferred * traits_.deferred_heads;
    }
    if (traits_.caching_allocator) states += rounding(index, share);
    const double boundary = strategy_.pp > 1 ? boundary_bytes() : 0;
    const int in_use = strategy_.virtual_stages > 1 ? traits_.interleaved_boundaries : traits_.boundaries;
    const double libraries = workspaces() + traits_.score_buffer * scores();
    double busy = 0;
    walk(list, out.activations, busy);
    out.statics += states + libraries + traits_.boundaries_left * strategy_.virtual_stages * boundary;
    out.peak = std::max(out.statics, states + libraries + in_use * boundary + mask() + transient + heads + busy);
    const double stays = states + libraries;
    out.reserved = stays + (out.peak - stays) * traits_.fragmentation;
    return out;
  }

 private:
  // fp8 is what products read; the parameters stay in bf16.
  static StateTypes types_of(Strategy strategy) {
    if (strategy.precision == DType::F8) strategy.precision = DType::BF16;
    return state_types(strategy);
  }

  struct Shares {  // bytes per element of the parameters
    double parameter = 0, gradient = 0;
    double state = 0, states = 0;  // of one tensor of states, and how many there are
    double left = 0, gathered = 0;
  };
  Shares shares() const {
    const int inner = strategy_.zero > 0 ? (strategy_.zero_group > 0 ? strategy_.zero_group : strategy_.dp) : 1;
    const double ranks = strategy_.zero > 0 ? inner * strategy_.cp : 1;
    const auto bytes = [](DType type) { return static_cast<double>(size_of(type).value); };
    const double param = bytes(types_.param), grad = bytes(types_.grad), state = bytes(types_.state);
    const double moments = strategy_.optimizer == OptimizerKind::Adam ? 2 : strategy_.momentum > 0 ? 1 : 0;
    Shares s;
    s.parameter = param / (strategy_.zero >= 3 ? ranks : 1);
    s.gradient = grad / (strategy_.zero >= 2 ? ranks : 1);
    s.state = state / ranks, s.states = moments + (types_.master ? 1 : 0);
    if (strategy_.zero == 1 && traits_.zero1_whole)
      s.parameter = *traits_.zero1_whole, s.gradient = 0, s.state = *traits_.zero1_shared / ranks, s.states = 1;
    if (traits_.half_main_gradients && types_.grad == DType::F16) s.left = bytes(DType::F32) / ranks;
    if (strategy_.zero >= 2) s.gathered += grad * (strategy_.overlap.gradients ? 2 : 1);
    if (strategy_.zero >= 3) s.gathered += bytes(types_.compute) * (strategy_.overlap.parameters ? 2 : 1);
    return s;
  }
  // What the allocator counts beyond the bytes of the tensors. Without ZeRO every parameter is a tensor, gradients are one
  // buffer per chunk; a distributed optimizer has a buffer of parameters too, and a tensor of its shard per parameter and state.
  double rounding(int index, const Shares& share) const {
    CachingAllocator memory;
    double asked = 0;
    const auto allocate = [&](double bytes) {
      memory.allocate(static_cast<std::int64_t>(bytes)), asked += static_cast<double>(static_cast<std::int64_t>(bytes));
    };
    std::vector<double> tensors;
    for (int chunk = 0; chunk < strategy_.virtual_stages; ++chunk) {
      const StageBytes& stage = at(stage_of(*strategy_.schedule, index, chunk, strategy_.pp));
      tensors.insert(tensors.end(), stage.tensors.begin(), stage.tensors.end());
      for (const double tensor : stage.tensors)
        if (strategy_.zero == 0) allocate(tensor * share.parameter);
      if (strategy_.zero > 0) allocate(stage.parameters * share.parameter);
      allocate(stage.parameters * share.gradient);
    }
    for (int state = 0; state < static_cast<int>(share.states); ++state)
      for (const double tensor : tensors) allocate(tensor * share.state);
    return static_cast<double>(memory.allocated()) - asked;
  }

  const StageBytes& at(int stage) const { return stages_[static_cast<std::size_t>(stage)]; }

  StageBytes stage_bytes(int stage) {
    StageBytes out;
    bool embeds = false;
    for (int l = layout_.first[static_cast<std::size_t>(stage)]; l < layout_.first[static_cast<std::size_t>(stage) + 1]; ++l) {
      const OpGraph::Layer& layer = graph_.layers[static_cast<std::size_t>(l)];
      const LayerGraph& kind = graph_.kinds[static_cast<std::size_t>(layer.kind)];
      embeds = embeds || kind.kind == "embedding";
      const LayerBytes& bytes = layer_bytes(layer.kind, redone_[static_cast<std::size_t>(l)] != 0);
      double parameters = 0;
      for (const Parameter& parameter : kind.parameters)
        if (!(parameter.tied && embeds)) {
          out.tensors.push_back(elements(parameter));
          parameters += out.tensors.back();
        }
      out.parameters += parameters;
      out.largest_layer = std::max(out.largest_layer, parameters);
      out.kept += bytes.kept;
      if (layer.counted) out.counted += bytes.kept, out.left += bytes.left;
      out.backward = std::max(out.backward, bytes.backward);
      out.loss = std::max(out.loss, bytes.loss);
      out.held = std::max(out.held, bytes.held);
      out.deferred = std::max(out.deferred, bytes.deferred);
      if (kind.output >= 0) out.boundary = size(kind.values[static_cast<std::size_t>(kind.output)]);
    }
    return out;
  }
  const LayerBytes& layer_bytes(int kind, bool full) {
    const auto found = known_.find({kind, full});
    if (found != known_.end()) return found->second;
    const LayerMeasure measure(graph_.kinds[static_cast<std::size_t>(kind)], strategy_, traits_, copies_, full);
    return known_.emplace(std::pair{kind, full}, measure.take()).first->second;
  }

  // In issue order: what is kept, and the most that an action needs beside it.
  void walk(const std::vector<ScheduleOp>& list, double& activations, double& busy) const {
    double kept = 0, counted = 0;
    for (const ScheduleOp& op : list) {
      const StageBytes& stage = at(op.stage);
      if (op.work == Work::F) {
        kept += stage.kept, counted += stage.counted;
        activations = std::max(activations, counted);
        busy = std::max(busy, kept + stage.loss);
      } else if (op.work == Work::B) {
        busy = std::max(busy, kept + stage.backward + stage.held);
        kept -= stage.kept, counted -= stage.counted;
      } else if (op.work == Work::I) {
        busy = std::max(busy, kept + stage.backward + stage.held);
        kept += stage.left - stage.kept, counted += stage.left - stage.counted;
        busy = std::max(busy, kept);
        activations = std::max(activations, counted);
      } else if (op.work == Work::W) {
        kept -= stage.left, counted -= stage.left;
      }
    }
  }

  double boundary_bytes() const { return at(0).boundary; }
  double mask() const {
    if (!traits_.attention_mask) return 0;
    return static_cast<double>(strategy_.micro_batch) * static_cast<double>(strategy_.seq) *
           static_cast<double>(strategy_.seq / strategy_.cp);
  }
  double scores() const {
    for (const LayerGraph& kind : graph_.kinds)
      for (const Operator& op : kind.operators)
        if (op.op == Op::Softmax && !op.communication) return count(kind.values[static_cast<std::size_t>(op.outputs[0])]);
    return 0;
  }
  double workspaces() const {
    double sum = 0;
    for (const auto& [library, sizes] : traits_.workspaces) {
      auto found = sizes.find(architecture_);
      if (found == sizes.end()) found = sizes.find("any");
      if (found != sizes.end()) sum += static_cast<double>(found->second.value);
    }
    return sum;
  }

  const Strategy& strategy_;
  const MemoryTraits& traits_;
  const OpGraph& graph_;
  const StageLayout& layout_;
  std::vector<char> redone_ = layers_redone(strategy_.recompute, graph_, layout_, *strategy_.schedule, strategy_.pp);
  StateTypes types_;
  std::string architecture_ = {};
  bool copies_ = false;
  std::map<std::pair<int, bool>, LayerBytes> known_ = {};
  std::vector<StageBytes> stages_ = {};
};

// So many micro-batches fill a pipeline: at most 2 p + v p chunks are in flight. GPipe holds all of them.
int microbatches_that_fill(const Strategy& s) {
  const auto m = static_cast<int>(s.global_batch / (s.micro_batch * s.dp));
  if (s.schedule == Schedule::GPipe) return m;
  const int group = s.microbatch_group > 0 ? s.microbatch_group : s.pp;
  return std::min(m, static_cast<int>(round_up(4 * s.pp, group)));
}

}  // namespace

double FrameworkAllocation::largest() const {
  double most = 0;
  for (const RankAllocation& rank : ranks) most = std::max(most, rank.reserved);
  return most + outside;
}

std::variant<FrameworkAllocation, Infeasible> framework_allocation(const Model& model, const Cluster& cluster,
                                                                   const Strategy& strategy, const MemoryTraits& traits) {
  auto resolved = resolve(model, cluster, with_preset(strategy));
  if (auto* refused = std::get_if<Infeasible>(&resolved)) return *refused;
  const Strategy& s = std::get<Strategy>(resolved);
  OpGraph graph;
  try {
    graph = build_op_graph(model, sharding_of(s, state_types(s)));
  } catch (const Error& refused) {
    return Infeasible{.reason = refused.what()};
  }
  auto layout = stage_layout(graph, s.pp * s.virtual_stages, s.layer_split);
  if (auto* refused = std::get_if<Infeasible>(&layout)) return *refused;
  const ScheduleLists lists =
      schedule_entry(*s.schedule)
          .lists({.p = s.pp, .m = microbatches_that_fill(s), .v = s.virtual_stages, .g = s.microbatch_group});
  const Allocation allocation(cluster, s, traits, graph, std::get<StageLayout>(layout));
  FrameworkAllocation out;
  for (int rank = 0; rank < s.pp; ++rank) out.ranks.push_back(allocation.rank(rank, lists[static_cast<std::size_t>(rank)]));
  out.outside = static_cast<double>(framework_memory(s, traits).value);
  return out;
}

}  // namespace foreshard
