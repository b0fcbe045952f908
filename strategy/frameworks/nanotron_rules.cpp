// nanotron: bf16 parameters and fp32 accumulation of gradients, ZeRO 0 and 1. Sources: huggingface/nanotron at c252843,
// optim/gradient_accumulator.py, optim/zero.py, distributed.py (all_gather_coalesced), trainer.py; PyTorch's DistributedDataParallel.
#include "strategy/frameworks/step_replay.h"

namespace foreshard {

namespace {

constexpr double kBucket = 25 << 20;  // of gradients: bucket_cap_mb of DistributedDataParallel

class NanotronRules final : public StepRules {
 public:
  using StepRules::StepRules;

  // Parameters, one fp32 buffer of all gradients, also under ZeRO 1, and one of the master copy. DistributedDataParallel, which only ZeRO 0
  // has, begins with one bucket for all gradients.
  void build() override {
    each_tensor([&](double tensor) { memory_.allocate(statics_, rank_.parameter * tensor); });
    memory_.allocate(statics_, kFloatBytes * elements());
    memory_.allocate(statics_, kFloatBytes * elements() / shards());
    if (has_buckets()) memory_.allocate(buckets_, rank_.parameter * elements());
  }

  // 16-bit logits, which are freed as soon as their fp32 copy exists, and another in fp32; exp works in place.
  void loss(const ReplayedLayer& head, Blocks& kept) override {
    Blocks narrow, wide;
    memory_.allocate(narrow, rank_.compute * head.logits);
    memory_.allocate(wide, kFloatBytes * head.logits);
    memory_.free(narrow);
    memory_.allocate(kept, kFloatBytes * head.logits);
    memory_.free(wide);
  }
  void loss_backward(const ReplayedLayer& head, Blocks& kept, Blocks& gradient) override {
    memory_.allocate(gradient, rank_.compute * head.logits);
    memory_.free(kept);
  }

  // The 16-bit gradients of all layers live until the backward of the micro-batch ends; then they are added to the fp32 buffer.
  void end_backward(const ReplayedLayer& layer, bool) override {
    for (const double tensor : layer.tensors) memory_.allocate(gradients_, rank_.parameter * tensor);
    if (is_first(layer)) memory_.free(gradients_);
  }

  void update(bool first) override {
    if (first && has_buckets()) {  // one bucket per 25 MB from the second step on
      memory_.free(buckets_);
      double bytes = 0;
      each_tensor([&](double tensor) {
        bytes += rank_.parameter * tensor;
        if (bytes >= kBucket) memory_.allocate(buckets_, std::exchange(bytes, 0));
      });
      memory_.allocate(buckets_, bytes);
    }
    if (first)
      for (int moment = 0; moment < 2; ++moment)
        each_tensor([&](double tensor) { memory_.allocate(statics_, kFloatBytes * tensor / shards()); });
    if (rank_.zero == 1 && rank_.shards > 1) gather_parameters();
  }

 private:
  double shards() const { return rank_.zero > 0 ? rank_.shards : 1; }
  bool has_buckets() const { return rank_.zero == 0 && rank_.replicas > 1; }
  bool is_first(const ReplayedLayer& layer) const {
    for (const auto& chunk : rank_.chunks)
      if (&chunk.front() == &layer) return true;
    return false;
  }

  // all_gather_coalesced: a flat copy per data-parallel rank, the input, and in c10d, which flattens lists again, one output for all.
  void gather_parameters() {
    const double bytes = rank_.parameter * elements();
    Blocks copies;
    for (int rank = 0; rank < rank_.shards; ++rank) memory_.allocate(copies, bytes / shards());
    memory_.allocate(copies, bytes / shards());
    memory_.allocate(copies, bytes);
    memory_.free(copies);
  }

  Blocks statics_ = {}, buckets_ = {}, gradients_ = {};
};

}  // namespace

std::unique_ptr<StepRules> nanotron_rules(const ReplayedRank& rank, StepMemoryPool& memory) {
  return std::make_unique<NanotronRules>(rank, memory);
}

}  // namespace foreshard
