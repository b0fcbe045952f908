#include "strategy/frameworks/step_replay.h"

#include <algorithm>
#include <numeric>

namespace foreshard {

namespace {

constexpr int kSteps = 3;

class StepPlayer {
 public:
  StepPlayer(const ReplayedRank& rank, MakeStepRules rules, Bytes limit)
      : rank_(rank), memory_(limit), rules_(rules(rank, memory_)) {}

  ReplayedMemory play() {
    ReplayedMemory result;
    Blocks statics;
    rules_->build();
    memory_.allocate_each(statics, rank_.statics);
    for (int step = 0; step < kSteps; ++step) {
      memory_.forget_peak();
      rules_->begin_step();
      for (const ScheduleOp& op : rank_.list) {
        if (op.work == Work::F) forward(op);
        if (op.work == Work::B || op.work == Work::I) backward(op);
      }
      rules_->update(step == 0);
      result.between = {memory_.allocator().allocated()};
    }
    result.peak = {memory_.allocator().allocated_peak()};
    result.reserved = {memory_.allocator().reserved()};
    result.overflowed = memory_.allocator().overflowed();
    return result;
  }

 private:
  struct Microbatch {
    std::vector<Blocks> kept = {};  // [layer]
    Blocks loss = {};
  };
  std::size_t chunk_of(const ScheduleOp& op) const {
    return static_cast<std::size_t>(std::ranges::find(rank_.stages, op.stage) - rank_.stages.begin());
  }

  void forward(const ScheduleOp& op) {
    const std::size_t chunk = chunk_of(op);
    Microbatch& here = running_[{chunk, op.microbatch}];
    Blocks held, before;
    for (const ReplayedLayer& layer : rank_.chunks[chunk]) {
      Blocks temporary, output;
      rules_->begin_forward(layer);
      memory_.allocate_each(here.kept.emplace_back(), layer.kept);
      memory_.allocate_each(temporary, layer.forward);
      memory_.allocate_each(held, layer.held);
      memory_.allocate(output, layer.output);
      memory_.free(temporary);
      memory_.free(before);
      std::swap(before, output);
      if (layer.logits > 0) rules_->loss(layer, here.loss);
      rules_->end_forward(layer);
    }
    memory_.free(before);
    memory_.free(held);
  }

  void backward(const ScheduleOp& op) {
    const std::size_t chunk = chunk_of(op);
    const bool last = op.microbatch + 1 == last_microbatch();
    const auto found = running_.find({chunk, op.microbatch});
    if (found == running_.end()) return;  // its forward is not in the list
    Blocks arriving;                      // the gradient of the layer's result
    const std::vector<ReplayedLayer>& layers = rank_.chunks[chunk];
    for (std::size_t l = layers.size(); l-- > 0;) {
      const ReplayedLayer& layer = layers[l];
      Blocks logits, temporary, leaving;
      rules_->begin_backward(layer);
      if (layer.logits > 0) rules_->loss_backward(layer, found->second.loss, logits);
      if (layer.recomputed) memory_.allocate_each(temporary, layer.made);
      memory_.allocate_each(temporary, layer.backward);
      memory_.allocate(leaving, layer.output);
      memory_.free(arriving);
      std::swap(arriving, leaving);
      memory_.free(temporary);
      memory_.free(logits);
      memory_.free(found->second.kept[l]);
      rules_->end_backward(layer, last);
    }
    memory_.free(arriving);
    running_.erase(found);
  }
  std::int32_t last_microbatch() const {
    std::int32_t count = 0;
    for (const ScheduleOp& op : rank_.list) count = std::max(count, op.microbatch + 1);
    return count;
  }

  const ReplayedRank& rank_;
  StepMemoryPool memory_;
  std::unique_ptr<StepRules> rules_;
  std::map<std::pair<std::size_t, std::int32_t>, Microbatch> running_ = {};  // {chunk, micro-batch}
};

}  // namespace

double ReplayedLayer::elements() const { return std::accumulate(tensors.begin(), tensors.end(), 0.0); }

ReplayedMemory replay_steps(const ReplayedRank& rank, MakeStepRules rules, Bytes limit) {
  return StepPlayer(rank, rules, limit).play();
}

}  // namespace foreshard
