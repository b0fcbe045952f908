// InternEvo: hybrid ZeRO 1 with bf16 gradients, or PyTorch's first FullyShardedDataParallel. Sources: InternLM/InternEvo at 7776693,
// solver/optimizer/hybrid_zero_optim.py, core/naive_amp.py, model/metrics.py; PyTorch 1.13 torch/optim/adamw.py.
#include "strategy/frameworks/step_replay.h"

#include <utility>

namespace foreshard {

namespace {

constexpr double kBucketElements = 512 << 20;  // of gradients that are flattened for one reduction

class InternEvoRules final : public StepRules {
 public:
  using StepRules::StepRules;

  // The model is built in blocks of one parameter each; then its parameters become views of a flat buffer, and the first blocks are free.
  void build() override {
    if (shards_parameters()) {
      each_tensor([&](double tensor) { memory_.allocate(statics_, rank_.parameter * tensor / rank_.shards); });
      each_tensor([&](double tensor) { memory_.allocate(statics_, kFloatBytes * tensor / rank_.shards); });
      return;
    }
    Blocks model;
    each_tensor([&](double tensor) { memory_.allocate(model, rank_.parameter * tensor); });
    memory_.free(model);
    memory_.allocate(statics_, rank_.parameter * elements());
    memory_.allocate(statics_, kFloatBytes * elements() / rank_.shards);
  }

  void begin_forward(const ReplayedLayer& layer) override { gather(layer); }
  void begin_backward(const ReplayedLayer& layer) override { gather(layer); }
  void end_forward(const ReplayedLayer&) override { memory_.free(gathered_); }

  // Logits are made fp32 (core/naive_amp.py). Then, for every micro-batch, the accuracy and the perplexity (model/metrics.py) copy them, take
  // their maximum away and exponentiate. The loss works in place.
  void loss(const ReplayedLayer& head, Blocks& kept) override {
    Blocks narrow, metrics;
    memory_.allocate(narrow, rank_.compute * head.logits);
    memory_.allocate(kept, kFloatBytes * head.logits);
    memory_.free(narrow);
    for (int each = 0; each < 3; ++each) memory_.allocate(metrics, kFloatBytes * head.logits);
    memory_.free(metrics);
  }
  void loss_backward(const ReplayedLayer& head, Blocks& kept, Blocks& gradient) override {
    memory_.allocate(gradient, rank_.compute * head.logits);
    memory_.free(kept);
  }

  // Gradients stay until the update.
  void end_backward(const ReplayedLayer& layer, bool last) override {
    memory_.free(gathered_);
    if (shards_parameters()) {
      Blocks whole;
      memory_.allocate_each(whole, layer.tensors, rank_.compute);
      if (last) memory_.allocate_each(gradients_, layer.tensors, rank_.gradient / rank_.shards, TorchStream::Reduce);
      memory_.free(whole);
      return;
    }
    if (!last) return;
    memory_.allocate_each(gradients_, layer.tensors, rank_.gradient);
    for (const double tensor : layer.tensors) add_to_bucket(tensor);
  }

  // The norm takes fp32 copies of the gradients: of what was reduced before the last bucket, then of that. Then flat 16-bit and fp32 gradients
  // of this rank's part, the moments, and AdamW's temporaries: the square root, and the quotient or the denominator.
  void update(bool first) override {
    if (shards_parameters()) {
      Blocks copies;
      each_tensor([&](double tensor) { memory_.allocate(copies, kFloatBytes * tensor / rank_.shards); });
      memory_.free(copies);
      each_tensor([&](double tensor) { memory_.allocate(gradients_, kFloatBytes * tensor / rank_.shards); });
      if (first)
        for (int moment = 0; moment < 2; ++moment)
          each_tensor([&](double tensor) { memory_.allocate(statics_, kFloatBytes * tensor / rank_.shards); });
      Blocks temporary;
      for (int each = 0; each < 2; ++each)
        each_tensor([&](double tensor) { memory_.allocate(temporary, kFloatBytes * tensor / rank_.shards); });
      memory_.free(temporary);
      memory_.free(gradients_);
      return;
    }
    const double part = elements() / rank_.shards;
    Blocks flat, temporary, copies;
    const std::vector<double> before = std::exchange(reduced_, {});
    reduce_bucket();
    memory_.allocate_each(copies, before, kFloatBytes / rank_.shards);
    memory_.free(copies);
    memory_.free(flat_bucket_);
    memory_.allocate_each(copies, std::exchange(reduced_, {}), kFloatBytes / rank_.shards);
    memory_.free(copies);
    memory_.allocate(flat, rank_.gradient * part);
    memory_.free(gradients_);
    memory_.allocate(flat, kFloatBytes * part);
    if (first)
      for (int moment = 0; moment < 2; ++moment) memory_.allocate(statics_, kFloatBytes * part);
    for (int each = 0; each < 2; ++each) memory_.allocate(temporary, kFloatBytes * part);
    memory_.free(temporary);
    memory_.free(flat);
  }

 private:
  // FullyShardedDataParallel gathers parameters on one stream and reduces gradients on another one (torch/distributed/fsdp/_runtime_utils.py,
  // _post_backward_hook), whose result is the sharded gradient.
  bool shards_parameters() const { return rank_.zero == 3; }
  void gather(const ReplayedLayer& layer) {
    if (shards_parameters()) memory_.allocate(gathered_, rank_.compute * layer.elements(), TorchStream::Gather);
  }

  // In the last backward gradients are flattened in buckets, and a bucket is reduced while the next one is filled.
  void add_to_bucket(double tensor) {
    if (in_bucket_ + tensor > kBucketElements) reduce_bucket();
    in_bucket_ += tensor;
    bucket_.push_back(tensor);
  }
  void reduce_bucket() {
    Blocks flat;
    memory_.allocate(flat, rank_.gradient * in_bucket_);
    memory_.free(flat_bucket_);
    std::swap(flat_bucket_, flat);
    reduced_.insert(reduced_.end(), bucket_.begin(), bucket_.end());
    bucket_.clear();
    in_bucket_ = 0;
  }

  Blocks statics_ = {}, gradients_ = {}, gathered_ = {}, flat_bucket_ = {};
  std::vector<double> bucket_ = {}, reduced_ = {};  // elements of tensors: in the bucket that is filled, and reduced
  double in_bucket_ = 0;
};

}  // namespace

std::unique_ptr<StepRules> internevo_rules(const ReplayedRank& rank, StepMemoryPool& memory) {
  return std::make_unique<InternEvoRules>(rank, memory);
}

}  // namespace foreshard
