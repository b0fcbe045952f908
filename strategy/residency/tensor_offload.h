// Decides which activations are copied to host memory between the forward and the backward, and when they are fetched again. For networks
// whose activations are much larger than their parameters, such as convolutional ones. Two rules:
//   vDNN       (Rhu et al. 2016, arXiv 1602.08124) offloads all tensors or all inputs of convolutions: each is sent during the operation
//              that reads it last in the forward, and fetched during the operation before the one that reads it in the backward
//   free time  (Peng et al. 2020, "Capuchin", ASPLOS) offloads first the tensors that have the most time between their two copies
// The timing is the planners' own model: one device, one copy engine per direction. The time that is reported comes from a replay of the
// plan.
//
//   compute  [ F0 ][ F1 ][ F2 ] ... [ B2 ][ B1 ][ B0 ]      t is made by F0, read by F1 and by B1
//   d2h            [ t  ]                                   sent during F1, the last operation of the forward that reads it
//   h2d                             [ t ]                   fetched from the start of B2 on
#pragma once

#include <variant>
#include <vector>

#include "core/base/error.h"
#include "strategy/residency/pcie_link.h"

namespace foreshard {

struct TimedOperation {
  Seconds compute = {};
  Bytes others = {};  // live while it runs, beside the tensors of TensorJob: its workspace, gradients of activations
};

// An activation that the backward reads.
struct HeldTensor {
  Bytes bytes = {};
  int made_by = 0;           // operation that computes it; the tensor is live from its start
  int last_forward_use = 0;  // last operation of the forward that reads it; made_by if there is none
  int used_again_by = 0;     // operation of the backward that reads it; the tensor is live until its end
  bool convolution_input = false;
};

struct TensorJob {
  std::vector<TimedOperation> operations = {};  // of one step, in order
  std::vector<HeldTensor> tensors = {};
  PcieLink link = {};
};

struct TensorChoice {
  static constexpr int kKept = -1;
  // Operation at whose start the fetch is issued: later than last_forward_use, at the latest used_again_by, which then waits for the whole
  // fetch. kKept: not offloaded.
  int fetched_at = kKept;
  bool operator==(const TensorChoice&) const = default;
};

struct TensorTiming {
  Seconds end = {};                  // of the step, which begins at 0
  Bytes peak = {};                   // the most live bytes
  double byte_seconds = 0;           // integral of live bytes over time
  std::vector<Seconds> starts = {};  // [operation]
  std::vector<Seconds> sent = {};    // [tensor]: end of its copy to host memory; 0: it is kept
  bool operator==(const TensorTiming&) const = default;
};

struct TensorPlan {
  std::vector<TensorChoice> choices = {};  // [tensor]
  // Each operation ends when the copies that were issued at its start are done, as in vDNN.
  bool waits_for_copies = false;
  TensorTiming timing = {};
  bool operator==(const TensorPlan&) const = default;
};

// Time and memory of the step under these choices.
TensorTiming tensor_timing(const TensorJob& job, const std::vector<TensorChoice>& choices, bool waits_for_copies);

// vDNN's rule: offloads all tensors, or the inputs of convolutions only. Keeps tensors that are used again right after their last forward
// use.
enum class VdnnScope : std::uint8_t { All, ConvolutionInputs };
TensorPlan vdnn_offload(const TensorJob& job, VdnnScope scope);

// While the peak is above the budget, offloads the kept tensor with the longest free time: the time from the end of its copy out to the
// latest start of a fetch that ends before its use in the backward. Then changes one tensor at a time (kept, fetched on demand, fetched one
// operation earlier or later) as long as that reduces the excess over the budget or, within the budget, the time of the step. Makes the
// same changes to the plan that offloads everything by vDNN's rule, too, and returns the faster plan. So if offloading everything fits, the
// answer is never slower than that. Infeasible, with the smallest peak that was found: no plan fits in the budget.
std::variant<TensorPlan, Infeasible> free_time_offload(const TensorJob& job, Bytes budget);

}  // namespace foreshard
