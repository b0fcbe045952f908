// PyTorch fully_shard (FSDP2) under AdamW, as torchtitan uses it. Sources: torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py,
// _fsdp_collectives.py and _fsdp_state.py of PyTorch 2.6; torch/distributed/pipelining/stage.py; torchtitan's train.py and parallelize_llama.py.
#include "strategy/frameworks/step_replay.h"

namespace foreshard {

namespace {

class FullyShardRules final : public StepRules {
 public:
  using StepRules::StepRules;

  void build() override {
    each_layer(
        [&](const ReplayedLayer& layer) { memory_.allocate_each(parameters_, layer.tensors, rank_.parameter / shards()); });
    // stage.py makes receive buffers for all micro-batches of a step in advance, in both directions.
    if (rank_.pipeline)
      for (std::int64_t m = 0; m < 2 * rank_.microbatches; ++m) memory_.allocate(receives_, boundary());
  }

  // zero_grad, then the forward of the root module gathers its parameters; they stay until the step ends. With a pipeline all stay.
  void begin_step() override {
    memory_.free(gradients_);
    gather([](const ReplayedLayer& layer) { return !layer.in_block; }, root_);
  }

  void begin_forward(const ReplayedLayer& layer) override {
    if (layer.in_block && !whole_.contains(&layer)) gather_layer(layer);
  }
  // The last block stays gathered, because its backward is next.
  void end_forward(const ReplayedLayer& layer) override {
    if (layer.in_block && !rank_.pipeline && &layer != last_block()) memory_.free(whole_.extract(&layer).mapped());
  }
  void begin_backward(const ReplayedLayer& layer) override {
    if (!layer.in_block || whole_.contains(&layer)) return;
    gather_layer(layer);
    memory_.free(staged_);
  }

  // 16-bit logits; in fp32 their copy and the result of log_softmax. In the backward the gradient of the log-likelihood and the gradient of
  // log_softmax beside the latter; with logits split over tensor-parallel ranks one more.
  void loss(const ReplayedLayer& head, Blocks& kept) override {
    Blocks narrow, wide;
    memory_.allocate(narrow, rank_.compute * head.logits);
    memory_.allocate(wide, kFloatBytes * head.logits);
    memory_.allocate(kept, kFloatBytes * head.logits);
    memory_.free(wide);
    if (rank_.pipeline)
      for (const int block : narrow.take()) outputs_.add(block);  // output_chunks of the schedule, until the step ends
    else
      memory_.free(narrow);
  }
  void loss_backward(const ReplayedLayer& head, Blocks& kept, Blocks& gradient) override {
    Blocks wide, result;
    memory_.allocate(wide, kFloatBytes * head.logits);
    if (rank_.splits_vocabulary) memory_.allocate(wide, kFloatBytes * head.logits);
    memory_.allocate(result, kFloatBytes * head.logits);
    memory_.free(wide);
    memory_.free(kept);
    memory_.allocate(gradient, rank_.compute * head.logits);
    memory_.free(result);
  }

  // Gradients of a block are reduced at once; with a pipeline they are summed in fp32, unsharded, and reduced after the last micro-batch.
  void end_backward(const ReplayedLayer& layer, bool last) override {
    Blocks& own = layer.in_block ? block_gradients_ : root_gradients_;
    if (layer.in_block || !has_gradients_.contains(&layer)) memory_.allocate_each(own, layer.tensors, rank_.compute);
    has_gradients_.insert(&layer);
    if (!layer.in_block) {
      return;
    }
    if (rank_.pipeline) {
      if (!sums_.contains(&layer)) memory_.allocate_each(sums_[&layer], layer.tensors, kFloatBytes);
      memory_.free(block_gradients_);
      if (!last) return;
    }
    reduce(layer.elements());
    memory_.free(block_gradients_);
    if (rank_.pipeline) memory_.free(sums_.extract(&layer).mapped());
    if (const auto found = whole_.find(&layer); found != whole_.end()) {
      memory_.free(found->second);
      whole_.erase(found);
    }
  }

  // The root's gradients come last. AdamW for lists of tensors (foreach) makes one temporary of each parameter's size.
  void update(bool first) override {
    double root = 0;
    each_layer([&](const ReplayedLayer& layer) { root += layer.in_block ? 0 : layer.elements(); });
    memory_.free(root_);
    reduce(root);
    memory_.free(root_gradients_);
    memory_.free(reduced_);
    has_gradients_.clear();
    memory_.free(staged_);
    memory_.free(outputs_);
    if (first)
      each_layer([&](const ReplayedLayer& layer) {
        for (const double tensor : layer.tensors)
          for (int moment = 0; moment < 2; ++moment) memory_.allocate(moments_, rank_.parameter / shards() * tensor);
      });
    Blocks temporary;
    each_layer(
        [&](const ReplayedLayer& layer) { memory_.allocate_each(temporary, layer.tensors, rank_.parameter / shards()); });
    memory_.free(temporary);
  }

 private:
  double shards() const { return rank_.shards; }
  double boundary() const { return rank_.chunks.front().front().output; }
  template <class Visit>
  void each_layer(const Visit& visit) const {
    for (const auto& chunk : rank_.chunks)
      for (const ReplayedLayer& layer : chunk) visit(layer);
  }
  const ReplayedLayer* last_block() const {
    const ReplayedLayer* last = nullptr;
    each_layer([&](const ReplayedLayer& layer) { last = layer.in_block ? &layer : last; });
    return last;
  }
  double gathered_bytes(const ReplayedLayer& layer) const {
    return rank_.compute * layer.elements() - (rank_.compute - 1) * layer.narrow;
  }

  // All-gather on its own stream: the cast shard, the result, then a copy of it per parameter on the compute stream. The result before this
  // one is freed now.
  template <class Chosen>
  void gather(const Chosen& chosen, Blocks& into) {
    double bytes = 0;
    each_layer([&](const ReplayedLayer& layer) { bytes += chosen(layer) ? gathered_bytes(layer) : 0; });
    Blocks staged;
    memory_.allocate(staged, bytes / shards(), TorchStream::Gather);
    memory_.allocate(staged, bytes, TorchStream::Gather);
    each_layer([&](const ReplayedLayer& layer) {
      if (chosen(layer)) memory_.allocate_each(into, layer.tensors, gathered_bytes(layer) / layer.elements());
    });
    memory_.free(staged_);
    std::swap(staged_, staged);
  }
  void gather_layer(const ReplayedLayer& layer) {
    gather([&](const ReplayedLayer& each) { return &each == &layer; }, whole_[&layer]);
  }

  // Reduce-scatter: its input in fp32, which the next one frees, and on its own stream the sharded gradients, which stay until zero_grad.
  void reduce(double elements) {
    Blocks input;
    memory_.allocate(input, kFloatBytes * elements);
    memory_.allocate(gradients_, kFloatBytes * elements / shards(), TorchStream::Reduce);
    memory_.free(reduced_);
    std::swap(reduced_, input);
  }

  Blocks parameters_ = {}, receives_ = {}, moments_ = {}, gradients_ = {};
  Blocks root_ = {}, staged_ = {}, reduced_ = {}, block_gradients_ = {}, root_gradients_ = {}, outputs_ = {};
  std::map<const ReplayedLayer*, Blocks> whole_ = {}, sums_ = {};  // gathered blocks; sums of gradients under a pipeline
  std::set<const ReplayedLayer*> has_gradients_ = {};
};

}  // namespace

std::unique_ptr<StepRules> fully_shard_rules(const ReplayedRank& rank, StepMemoryPool& memory) {
  return std::make_unique<FullyShardRules>(rank, memory);
}

}  // namespace foreshard
