// InternEvo: hybrid ZeRO 1 with bf16 gradients, or PyTorch's first FullyShardedDataParallel. Sources: InternLM/InternEvo at 7776693,
// solver/optimizer/hybrid_zero_optim.py; PyTorch 1.13 torch/optim/adamw.py.
#include "strategy/frameworks/step_replay.h"

#include <algorithm>

namespace foreshard {

namespace {

constexpr double kBucketElements = 512 << 20;       // of gradients that are flattened for one reduction

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

  void loss(const ReplayedLayer& head, Blocks& kept) override {
    memory_.allocate(kept, rank_.compute * head.logits);
    memory_.allocate(kept, kFloatBytes * head.logits);
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
      memory_.free(whole);
      if (last) memory_.allocate_each(gradients_, layer.tensors, rank_.gradient / rank_.shards);
      return;
    }
    if (!last) return;
    memory_.allocate_each(gradients_, layer.tensors, rank_.gradient);
    fill_buckets(layer.elements());
  }

  // Flat 16-bit and fp32 gradients of this rank's part, the moments, and AdamW's
  // temporaries: the square root, and the quotient or the denominator.
  void update(bool first) override {
    if (shards_parameters()) {
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
    Blocks flat, temporary;
    memory_.free(bucket_);
    memory_.free(bucket_before_);
    in_bucket_ = 0;
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
  bool shards_parameters() const { return rank_.zero == 3; }
  template <class Visit>
  void each_tensor(const Visit& visit) const {
    for (const auto& chunk : rank_.chunks)
      for (const ReplayedLayer& layer : chunk)
        for (const double tensor : layer.tensors) visit(tensor);
  }
  double elements() const {
    double sum = 0;
    each_tensor([&](double tensor) { sum += tensor; });
    return sum;
  }
  void gather(const ReplayedLayer& layer) {
    if (shards_parameters()) memory_.allocate(gathered_, rank_.compute * layer.elements());
  }

  // In the last backward gradients are flattened in buckets, and a bucket is reduced while the next one is filled.
  void fill_buckets(double elements) {
    in_bucket_ += elements;
    if (in_bucket_ < std::min(this->elements(), kBucketElements)) return;
    memory_.free(bucket_before_);
    std::swap(bucket_before_, bucket_);
    memory_.allocate(bucket_, rank_.gradient * in_bucket_);
    in_bucket_ = 0;
  }

  Blocks statics_ = {}, gradients_ = {}, gathered_ = {}, bucket_ = {}, bucket_before_ = {};
  double in_bucket_ = 0;
};

}  // namespace

std::unique_ptr<StepRules> internevo_rules(const ReplayedRank& rank, StepMemoryPool& memory) {
  return std::make_unique<InternEvoRules>(rank, memory);
}

}  // namespace foreshard
