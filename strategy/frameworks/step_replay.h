// Replays the allocations of one rank in its first training steps on PyTorch's caching allocator. Reserved memory is then a result: it
// follows from the order of allocations and from their streams, and needs no factor for fragmentation. docs/memory.md says which buffers
// each framework has and where its sources show them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/base/units.h"
#include "strategy/frameworks/caching_allocator.h"
#include "strategy/schedule/schedule.h"

namespace foreshard {

struct ReplayedLayer {
  std::vector<double> tensors = {};   // [parameter]: elements on this rank before ZeRO shards them
  double narrow = 0;                  // of these elements, those that are gathered in 8 bits
  bool in_block = false;              // a transformer layer; else the embedding, the final norm or the head
  bool recomputed = false;            // its backward runs the whole forward again
  std::vector<double> kept = {};      // [tensor]: bytes that a micro-batch keeps from its forward to its backward
  std::vector<double> made = {};      // [tensor]: bytes that the forward makes for the backward when nothing is recomputed
  std::vector<double> forward = {};   // [tensor]: bytes of temporary results of the forward
  std::vector<double> held = {};      // [tensor]: bytes that stay until the forward of the micro-batch ends
  std::vector<double> backward = {};  // [tensor]: bytes of gradients of activations, freed at the end of the layer's backward
  double output = 0;                  // bytes of its result
  double logits = 0;                  // of the head: logits on this rank
  double elements() const;
};

struct ReplayedRank {
  std::vector<std::vector<ReplayedLayer>> chunks = {};  // [chunk][layer]
  std::vector<int> stages = {};                         // [chunk]: its stage
  std::vector<ScheduleOp> list = {};                    // its actions in one step
  std::int64_t microbatches = 1;                        // of a step; `list` may have fewer
  bool pipeline = false;                                // there are other stages
  bool last_stage = false;
  bool splits_vocabulary = false;                   // each tensor-parallel rank has a part of the logits
  int shards = 1;                                   // ranks over which ZeRO shards
  int replicas = 1;                                 // data-parallel ranks
  int zero = 0;                                     // its stage
  double parameter = 2, gradient = 2, compute = 2;  // bytes per element
  std::vector<double> statics = {};                 // further tensors that stay: bytes
};

struct ReplayedMemory {
  Bytes between = {};       // allocated between two steps
  Bytes peak = {};          // the most that is allocated at one time
  Bytes reserved = {};      // of the segments, after the last step
  bool overflowed = false;  // more than the limit was needed
};

// Blocks that are freed together.
class Blocks {
 public:
  void add(int block) { blocks_.push_back(block); }
  std::vector<int> take() { return std::exchange(blocks_, {}); }

 private:
  std::vector<int> blocks_ = {};
};

constexpr double kFloatBytes = 4;  // of an fp32 element

// The streams of PyTorch: the allocator has separate pools for each.
enum class TorchStream : std::uint8_t { Compute, Gather, Reduce };

class StepMemoryPool {
 public:
  explicit StepMemoryPool(Bytes limit) : memory_(limit.value) {}
  void allocate(Blocks& into, double bytes, TorchStream stream = TorchStream::Compute) {
    into.add(memory_.allocate(static_cast<std::int64_t>(bytes), static_cast<int>(stream)));
  }
  void allocate_each(Blocks& into, const std::vector<double>& sizes, double times = 1,
                     TorchStream stream = TorchStream::Compute) {
    for (const double size : sizes) allocate(into, size * times, stream);
  }
  void free(Blocks& blocks) {
    for (const int block : blocks.take()) memory_.free(block);
  }
  const CachingAllocator& allocator() const { return memory_; }
  void forget_peak() { memory_.forget_peak(); }

 private:
  CachingAllocator memory_;
};

// What a framework allocates beside activations: parameters, gradients, states, gathered parameters and the loss. One file per framework
// has an implementation. Functions are called in the order of the run; layers are those of ReplayedRank::chunks.
class StepRules {
 public:
  StepRules(const ReplayedRank& rank, StepMemoryPool& memory) : rank_(rank), memory_(memory) {}
  virtual ~StepRules() = default;
  StepRules(const StepRules&) = delete;
  StepRules& operator=(const StepRules&) = delete;

  virtual void build() = 0;
  virtual void begin_step() {}
  virtual void begin_forward(const ReplayedLayer&) {}
  virtual void end_forward(const ReplayedLayer&) {}
  // The loss of one micro-batch; `kept` lives until loss_backward().
  virtual void loss(const ReplayedLayer& head, Blocks& kept) = 0;
  // Leaves in `gradient` the gradient of the logits, which is freed after the head's backward.
  virtual void loss_backward(const ReplayedLayer& head, Blocks& kept, Blocks& gradient) = 0;
  virtual void begin_backward(const ReplayedLayer&) {}
  virtual void end_backward(const ReplayedLayer&, bool last_microbatch) = 0;
  virtual void update(bool first_step) = 0;

 protected:
  // Calls visit(elements) for each parameter of the rank.
  template <class Visit>
  void each_tensor(const Visit& visit) const {
    for (const auto& chunk : rank_.chunks)
      for (const ReplayedLayer& layer : chunk)
        for (const double tensor : layer.tensors) visit(tensor);
  }
  double elements() const {  // of all parameters of the rank
    double sum = 0;
    each_tensor([&](double tensor) { sum += tensor; });
    return sum;
  }

  const ReplayedRank& rank_;
  StepMemoryPool& memory_;
};

std::unique_ptr<StepRules> fully_shard_rules(const ReplayedRank& rank, StepMemoryPool& memory);
std::unique_ptr<StepRules> nanotron_rules(const ReplayedRank& rank, StepMemoryPool& memory);
std::unique_ptr<StepRules> internevo_rules(const ReplayedRank& rank, StepMemoryPool& memory);

using MakeStepRules = std::unique_ptr<StepRules> (*)(const ReplayedRank&, StepMemoryPool&);

// `limit`: what the device gives the allocator; 0: any amount. Replays three steps: optimizer states, which the first step creates, take
// blocks that the second step needs again.
ReplayedMemory replay_steps(const ReplayedRank& rank, MakeStepRules rules, Bytes limit);

}  // namespace foreshard
