#include "strategy/frameworks/framework_allocation.h"

#include <algorithm>
#include <map>
#include <utility>

#include "strategy/cost/framework_memory.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/frameworks/caching_allocator.h"
#include "strategy/frameworks/layer_bytes.h"
#include "strategy/frameworks/optimizer_shard.h"
#include "strategy/frameworks/replayed_rank.h"
#include "strategy/lower/lower.h"
#include "strategy/resolve/resolve.h"
#include "strategy/resolve/tables.h"

namespace foreshard {

namespace {

double bytes_of(DType type) { return static_cast<double>(size_of(type).value); }

struct StageBytes {
  double parameters = 0;             // elements that are trained
  double frozen = 0;                 // elements that are only read
  double experts = 0;                // elements of routed experts, which have other replicas than other parameters
  double products = 0;               // elements that matrix products of the layers read, in 8 bits in fp8 training
  std::vector<double> tensors = {};  // [trained parameter]: elements
  double largest_layer = 0;          // elements of its largest layer
  double layer = 0;                  // elements of its largest transformer layer
  double in_layers = 0;              // elements of all its transformer layers
  double kept = 0, counted = 0;      // bytes of activations that a micro-batch keeps on the device; those of transformer layers
  double layer_kept = 0;             // bytes of activations that one of its layers keeps, at most
  // Bytes on the device for activations in host memory: two buffers for inputs of layers. If all activations are offloaded they come back
  // after the peak, and count 0.
  double arriving = 0;
  double left = 0;  // bytes that a deferred weight gradient needs: LayerBytes::left of its transformer layers
  double backward = 0, loss = 0, held = 0, deferred = 0;
  double input_backward = 0;  // as `backward`, with weight gradients deferred
  double boundary = 0;        // bytes that it sends to the next stage
};

class Allocation {
 public:
  Allocation(const Cluster& cluster, const Strategy& strategy, const MemoryTraits& traits, const OpGraph& graph,
             const StageLayout& layout)
      : strategy_(strategy), traits_(traits), graph_(graph), layout_(layout), types_(state_types(strategy)) {
    architecture_ = gpu_of(cluster, cluster.nodes.front().shape.gpu).architecture;
    copies_ = std::find(traits.attention_copies.begin(), traits.attention_copies.end(), architecture_) !=
              traits.attention_copies.end();
    for (int stage = 0; stage < layout.stages(); ++stage) stages_.push_back(stage_bytes(stage));
  }

  RankAllocation rank(int index, const std::vector<ScheduleOp>& list) const {
    RankAllocation out;
    const Shares share = shares();
    double states = 0, transient = 0, heads = 0, casts = 0;
    double widened = 0, widened_experts = 0;  // by one optimizer after the other
    for (int chunk = 0; chunk < strategy_.virtual_stages; ++chunk) {
      const StageBytes& stage = at(stage_of(*strategy_.pipeline.schedule, index, chunk, strategy_.pp));
      states += stage.parameters * (share.parameter + share.gradient + share.state * share.states);
      states += stage.frozen * share.frozen;
      states += stage.products * (share.product - (stage.frozen > 0 ? share.frozen : share.parameter));
      const double cut = (strategy_.zero.stage >= 3 ? share.parameter : 0) + (strategy_.zero.stage >= 2 ? share.gradient : 0) +
                         share.state * share.states;
      const double copies = sharing_ranks() / expert_replicas();  // parts of an expert's states are so many times larger
      if (strategy_.zero.stage > 0) states += stage.experts * cut * (copies - 1);
      out.statics += stage.parameters * share.left;
      widened += (stage.parameters - stage.experts) * share.widened, widened_experts += stage.experts * share.widened * copies;
      states -= stage.in_layers * (share.hosted_parameter + share.hosted_gradient);
      transient = std::max(transient, stage.largest_layer * share.gathered + stage.layer * share.arriving + stage.arriving);
      heads += stage.deferred * traits_.logits.deferred_heads;
      if (!stage.tensors.empty()) casts = std::max(casts, traits_.cast_largest * *std::ranges::max_element(stage.tensors));
    }
    if (traits_.caching_allocator) states += rounding(index, share);
    const double boundary = strategy_.pp > 1 ? boundary_bytes() : 0;
    const int in_use = strategy_.virtual_stages > 1 ? traits_.interleaved_boundaries : traits_.boundaries;
    const double libraries = workspaces() + traits_.scores.buffer * scores();
    double busy = 0;
    walk(list, out.activations, busy);
    out.statics += states + libraries + traits_.boundaries_left * strategy_.virtual_stages * boundary;
    out.peak = std::max(out.statics + std::max(widened, widened_experts),
                        states + libraries + in_use * boundary + mask() + transient + heads + casts + busy);
    const double stays = states + libraries;
    out.reserved = stays + (out.peak - stays) * traits_.fragmentation;
    return out;
  }

 private:
  struct Shares {  // bytes per element of the parameters
    double parameter = 0, gradient = 0;
    double frozen = 0;             // of frozen parameters: their values alone
    double product = 0;            // for parameters that matrix products of layers read, instead of `parameter`
    double state = 0, states = 0;  // of one optimizer state, and the number of states
    double left = 0, gathered = 0;
    double widened = 0;  // fp32 copies of the moments while the optimizer runs
    // For transformer layers: parameters and gradients that are in host memory, and buffers on the device for two layers of them.
    double hosted_parameter = 0, hosted_gradient = 0, arriving = 0;
  };
  int sharing_ranks() const {
    if (strategy_.zero.stage == 0) return 1;
    return (strategy_.zero.group > 0 ? strategy_.zero.group : strategy_.dp) * strategy_.cp;
  }
  double expert_replicas() const {
    const ExpertChoice& experts = strategy_.experts;
    return static_cast<double>(strategy_.tp * strategy_.cp * strategy_.dp) / (experts.ep * experts.etp);
  }
  Shares shares() const {
    const double ranks = sharing_ranks();
    const double param = bytes_of(types_.param), grad = bytes_of(types_.grad), state = bytes_of(types_.state);
    const double moments = strategy_.optimizer.kind == OptimizerKind::Adam ? 2 : strategy_.optimizer.momentum > 0 ? 1 : 0;
    Shares s;
    s.parameter = param / (strategy_.zero.stage >= 3 ? ranks : 1);
    s.frozen = s.parameter;
    s.product = product_bytes().value_or(param) / (strategy_.zero.stage >= 3 ? ranks : 1);
    s.gradient = grad / (strategy_.zero.stage >= 2 ? ranks : 1);
    s.state = state / ranks, s.states = moments + (types_.master ? 1 : 0);
    if (precision_aware()) {
      const bool remainder = strategy_.precision == DType::BF16 && types_.param == DType::BF16;
      s.states = moments + bytes_of(remainder ? DType::BF16 : DType::F32) / state;
      if (size_of(types_.state) < size_of(DType::F32)) s.widened = moments * bytes_of(DType::F32) / ranks;
    }
    if (strategy_.zero.stage == 1 && traits_.zero1)
      s.parameter = s.product = traits_.zero1->whole, s.gradient = 0, s.state = traits_.zero1->shared / ranks, s.states = 1;
    if (traits_.optimizer.half_main_gradients && size_of(types_.grad) < size_of(DType::F32) && !precision_aware())
      s.left = bytes_of(DType::F32) / ranks;
    place_in_host(s, param, grad);
    if (ranks == 1) return s;
    if (strategy_.zero.stage >= 2) s.gathered += grad * (strategy_.communication.overlap->gradients ? 2 : 1);
    if (strategy_.zero.stage >= 3)
      s.gathered += bytes_of(types_.compute) * (strategy_.communication.overlap->parameters ? 2 : 1);
    return s;
  }
  bool precision_aware() const {
    const bool narrow = size_of(types_.param) < size_of(DType::F32);
    return traits_.optimizer.precision_aware && narrow &&
           (strategy_.precision == DType::BF16 || size_of(types_.state) < size_of(DType::F32));
  }
  void place_in_host(Shares& s, double param, double grad) const {
    const Offload& host = traits_.offload;
    s.states -= (host.momentum ? 1 : 0) + (host.variance ? 1 : 0) + (host.master && types_.master ? 1 : 0);
    s.states = std::max(0.0, s.states);
    if (host.weights)
      s.hosted_parameter = s.parameter, s.product = s.parameter, s.arriving += 2 * param;
    else if (host.master && !types_.master && is_code(strategy_.precision))
      // Only the coded copies that products read are on the device.
      s.product = coded_size(strategy_.precision) / param * s.parameter;
    if (host.gradients) s.hosted_gradient = s.gradient, s.arriving += 2 * grad;
  }

  // Coded parameters have a transposed copy, unless the GPU multiplies 8-bit operands in any layout: Blackwell (Transformer
  // Engine, pytorch/utils.py, is_non_tn_fp8_gemm_supported). Codes of 4 bits are scaled along the sum, so both layouts are kept.
  std::optional<double> product_bytes() const {
    if (!is_code(strategy_.precision) || !traits_.fp8_parameters) return {};
    const bool any_layout = architecture_ == "blackwell" && strategy_.precision == DType::F8;
    return coded_size(strategy_.precision) * (any_layout ? 1 : 2);
  }

  // Bytes that the allocator counts beyond those of the tensors, by rounding. Without ZeRO every parameter is a tensor and gradients are
  // one buffer per chunk; a distributed optimizer also has one buffer of parameters per chunk, and the state tensors of its shard (here:
  // that of the last rank).
  double rounding(int index, const Shares& share) const {
    CachingAllocator memory;
    double asked = 0;
    const auto allocate = [&](double bytes) {
      memory.allocate(static_cast<std::int64_t>(bytes)), asked += static_cast<double>(static_cast<std::int64_t>(bytes));
    };
    const int ranks = sharing_ranks();
    std::vector<double> tensors;
    for (int chunk = 0; chunk < strategy_.virtual_stages; ++chunk) {
      const StageBytes& stage = at(stage_of(*strategy_.pipeline.schedule, index, chunk, strategy_.pp));
      const std::vector<double> held = optimizer_shard(stage.tensors, ranks, ranks - 1);
      tensors.insert(tensors.end(), held.begin(), held.end());
      for (const double tensor : stage.tensors)
        if (strategy_.zero.stage == 0) allocate(tensor * share.parameter);
      if (strategy_.zero.stage > 0) allocate(stage.parameters * share.parameter);
      allocate(stage.parameters * share.gradient);
    }
    for (int state = 0; state < static_cast<int>(share.states); ++state)
      for (const double tensor : tensors) allocate(tensor * share.state * ranks);
    return static_cast<double>(memory.allocated()) - asked;
  }

  const StageBytes& at(int stage) const { return stages_[static_cast<std::size_t>(stage)]; }

  StageBytes stage_bytes(int stage) {
    StageBytes out;
    bool embeds = false;
    int counted = 0;
    for (int l = layout_.first[static_cast<std::size_t>(stage)]; l < layout_.first[static_cast<std::size_t>(stage) + 1]; ++l) {
      const OpGraph::Layer& layer = graph_.layers[static_cast<std::size_t>(l)];
      const LayerGraph& kind = graph_.kinds[static_cast<std::size_t>(layer.kind)];
      embeds = embeds || kind.kind == "embedding";
      const LayerBytes& bytes = known_layer(layer.kind, redone_whole(l));
      double parameters = 0;
      for (const Parameter& parameter : kind.parameters)
        if (!(parameter.tied && embeds)) {
          const double elements = parameter_elements(parameter);
          parameters += elements;
          (parameter.frozen ? out.frozen : out.parameters) += elements;
          if (!parameter.frozen) out.tensors.push_back(elements);
          if (parameter.grid == Grid::Expert) out.experts += elements;
        }
      if (layer.counted) out.products += product_elements(kind);
      out.largest_layer = std::max(out.largest_layer, parameters);
      const double hosted = layer.counted ? kept_in_host(kind, bytes, counted++) : 0;
      if (traits_.offload.inputs) out.arriving = std::max(out.arriving, 2 * hosted);
      out.kept += bytes.kept - hosted;
      out.layer_kept = std::max(out.layer_kept, bytes.kept - hosted);
      if (layer.counted)
        out.counted += bytes.kept - hosted, out.left += bytes.left, out.in_layers += parameters,
            out.layer = std::max(out.layer, parameters);
      out.backward = std::max(out.backward, bytes.backward);
      out.input_backward = std::max(out.input_backward, bytes.backward + bytes.waiting);
      out.loss = std::max(out.loss, bytes.loss);
      out.held = std::max(out.held, bytes.held);
      out.deferred = std::max(out.deferred, bytes.deferred);
      if (kind.output >= 0) out.boundary = size(kind.values[static_cast<std::size_t>(kind.output)]);
    }
    return out;
  }
  static double product_elements(const LayerGraph& layer) {
    double sum = 0;
    for (const Operator& op : layer.operators)
      if (is_weight_product(op)) sum += parameter_elements(layer.parameters[static_cast<std::size_t>(op.weights.front())]);
    return sum;
  }
  double kept_in_host(const LayerGraph& layer, const LayerBytes& bytes, int index) const {
    if (traits_.offload.activations && index < traits_.offload.activation_layers) return bytes.kept;
    return traits_.offload.inputs ? std::min(bytes.kept, size(layer.values[static_cast<std::size_t>(layer.input)])) : 0;
  }
  const LayerBytes& known_layer(int kind, bool full) {
    const auto found = known_.find({kind, full});
    if (found != known_.end()) return found->second;
    const LayerGraph& layer = graph_.kinds[static_cast<std::size_t>(kind)];
    return known_.emplace(std::pair{kind, full}, layer_bytes(layer, strategy_, traits_, copies_, full)).first->second;
  }

  // Goes through the actions of a rank in order. `activations`: the most bytes that transformer layers keep; `busy`: the most bytes of
  // activations in use, temporary ones included.
  void walk(const std::vector<ScheduleOp>& list, double& activations, double& busy) const {
    double kept = 0, counted = 0;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const ScheduleOp& op = list[i];
      const StageBytes& stage = at(op.stage);
      if (op.work == Work::F && op.with_next) {
        // A cell: layers of the forward and of the backward run in turns, so one keeps while the other frees.
        const ScheduleOp& next = list[++i];
        const StageBytes& back = at(next.stage);
        const bool halves = next.work == Work::I;
        const double more = stage.kept - back.kept + (halves ? back.left : 0);
        const double counted_more = stage.counted - back.counted + (halves ? back.left : 0);
        const double most = std::min(stage.kept, std::max(0.0, more) + stage.layer_kept);
        busy = std::max(busy, kept + most + std::max(stage.loss, (halves ? back.input_backward : back.backward) + back.held));
        activations = std::max(activations, counted + std::min(stage.counted, std::max(0.0, counted_more) + stage.layer_kept));
        kept += more, counted += counted_more;
      } else if (op.work == Work::F) {
        kept += stage.kept, counted += stage.counted;
        activations = std::max(activations, counted);
        busy = std::max(busy, kept + stage.loss);
      } else if (op.work == Work::B) {
        busy = std::max(busy, kept + stage.backward + stage.held);
        kept -= stage.kept, counted -= stage.counted;
      } else if (op.work == Work::I) {
        busy = std::max(busy, kept + stage.input_backward + stage.held);
        kept += stage.left - stage.kept, counted += stage.left - stage.counted;
        busy = std::max(busy, kept);
        activations = std::max(activations, counted);
      } else if (op.work == Work::W) {
        kept -= stage.left, counted -= stage.left;
      }
    }
  }

  bool redone_whole(int layer) const {
    const int row = kept_.row_of(layer);
    return row >= 0 && kept_.rows[static_cast<std::size_t>(row)].redone.whole;
  }
  double boundary_bytes() const { return at(0).boundary; }
  double mask() const {
    if (!traits_.attention_mask) return 0;
    const std::int64_t own = strategy_.batch.seq / strategy_.cp;
    return static_cast<double>(strategy_.batch.micro) * static_cast<double>(strategy_.batch.seq) * static_cast<double>(own);
  }
  double scores() const {
    for (const LayerGraph& kind : graph_.kinds)
      for (const Operator& op : kind.operators)
        if (is<ops::Softmax>(op.op) && !op.communication) return count(kind.values[static_cast<std::size_t>(op.outputs[0])]);
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
  ActivationPolicy kept_ = activation_policy(strategy_, graph_, layout_);
  StateTypes types_;
  std::string architecture_ = {};
  bool copies_ = false;
  std::map<std::pair<int, bool>, LayerBytes> known_ = {};
  std::vector<StageBytes> stages_ = {};
};

// The number of micro-batches with which memory reaches its peak, to make lists short: at most 2 p + v p chunks are in flight, 4 p of
// zb-2p. Schedules with all forwards first hold all micro-batches.
int microbatches_that_fill(const Strategy& s) {
  const auto m = static_cast<int>(s.batch.global / (s.batch.micro * s.dp));
  if (schedule_entry(*s.pipeline.schedule).forwards_first) return m;
  const int group = s.pipeline.microbatch_group > 0 ? s.pipeline.microbatch_group : s.pp;
  return std::min(m, static_cast<int>(round_up(std::int64_t{4} * s.pp, std::int64_t{group})));
}

// What the driver keeps of the memory that it shows: CUDA offers 79.25 of the 80 GiB of an A100 and 31.37 of the 31.84 GiB of an RTX 5090
// (PyTorch's messages in levihsu/OOTDiffusion issue 235 and Wan-Video/Wan2.1 issue 465). The smaller of the two.
constexpr double kDriver = 0.47 * (1 << 30);

// Replaces the closed forms of a rank by a replay of its allocations.
void replay(const ReplayedRank& rank, const MemoryTraits& traits, double capacity, RankAllocation& out) {
  const Bytes limit = {static_cast<std::int64_t>(capacity - kDriver)};
  ReplayedMemory memory = replay_steps(rank, step_rules(traits.step->rules), limit);
  if (memory.overflowed) memory = replay_steps(rank, step_rules(traits.step->rules), {});  // what it would take
  out.statics = static_cast<double>(memory.between.value);
  out.peak = static_cast<double>(memory.peak.value);
  out.reserved = static_cast<double>(memory.reserved.value);
}

}  // namespace

Shortage FrameworkAllocation::shortage(Bytes capacity) const {
  const double most = static_cast<double>(capacity.value);
  if (largest() <= most) return Shortage::None;
  for (const RankAllocation& rank : ranks)
    if (rank.peak + outside > most) return Shortage::Allocated;
  return Shortage::Reserved;
}

double FrameworkAllocation::largest() const {
  double most = 0;
  for (const RankAllocation& rank : ranks) most = std::max(most, rank.reserved);
  return most + outside;
}

std::variant<FrameworkAllocation, Infeasible> framework_allocation(const Model& model, const Cluster& cluster,
                                                                   const Strategy& strategy, const MemoryTraits& traits) {
  auto resolved = resolve(model, cluster, strategy);
  if (auto* refused = std::get_if<Infeasible>(&resolved)) return *refused;
  const Strategy& s = std::get<Strategy>(resolved);
  if (schedule_entry(*s.pipeline.schedule).routes > 1)
    return Infeasible{.reason = "a framework's memory is not known for schedules that hold every stage twice"};
  OpGraph graph;
  try {
    graph = build_op_graph(model, sharding_of(s, state_types(s)));
  } catch (const Error& refused) {
    return Infeasible{.reason = refused.what()};
  }
  auto layout = stage_layout(graph, s.pp * s.virtual_stages, s.pipeline.layer_split);
  if (auto* refused = std::get_if<Infeasible>(&layout)) return *refused;
  const ScheduleLists lists = schedule_entry(*s.pipeline.schedule).lists(schedule_shape(s, microbatches_that_fill(s)));
  const Gpu& gpu = gpu_of(cluster, cluster.nodes.front().shape.gpu);
  const Allocation allocation(cluster, s, traits, graph, std::get<StageLayout>(layout));
  FrameworkAllocation out;
  out.outside = static_cast<double>(framework_memory(s, traits, gpu.architecture).value);
  for (int rank = 0; rank < s.pp; ++rank) {
    const std::vector<ScheduleOp>& list = lists[static_cast<std::size_t>(rank)];
    out.ranks.push_back(allocation.rank(rank, list));
    const auto* shape = std::get_if<Transformer>(&model.shape);
    if (!traits.step || shape == nullptr || s.experts.ep * s.experts.etp > 1) continue;
    replay(replayed_rank(*shape, s, traits, graph, std::get<StageLayout>(layout), rank, list), traits,
           static_cast<double>(gpu.memory.value) - out.outside, out.ranks.back());
  }
  return out;
}

std::variant<FrameworkAllocation, Infeasible> framework_allocation(const Model& model, const Cluster& cluster,
                                                                   const Strategy& strategy) {
  MemoryTraits traits = with_flags(framework_preset(strategy.framework).memory, "");
  traits.offload = offload_of(strategy.offload);
  return framework_allocation(model, cluster, strategy, traits);
}

}  // namespace foreshard
