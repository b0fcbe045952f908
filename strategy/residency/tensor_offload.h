// Which activations are sent to host memory between the forward and the backward, and when they are fetched again: rules for networks whose
// activations dwarf their parameters, as convolutional ones do.
//   vDNN       Rhu et al. 2016, arXiv 1602.08124: what a rule names is sent beside the operation that reads it, and fetched one ahead
//   free time  Peng et al. 2020, "Capuchin", ASPLOS: first the tensors for which the copies hide behind computes the longest
// The timing is the planners' own model: one device, one copy engine per direction. The time of a plan comes from its replay.
//
//   compute  [ F0 ][ F1 ][ F2 ] ... [ B2 ][ B1 ][ B0 ]      t is made by F0, read by F1 and by B1
//   d2h            [ t  ]                                   sent beside its last read of the forward
//   h2d                             [ t ]                   fetched at B2
#pragma once

#include <variant>
#include <vector>

#include "core/base/error.h"
#include "strategy/residency/pcie_link.h"

namespace foreshard {

struct TimedOperation {
  Seconds compute = {};
  Bytes others = {};  // live while it runs and no tensor of the list: its workspace, gradients of activations
};

struct HeldTensor {
  Bytes bytes = {};
  int made_by = 0;           // operation; the tensor is live from its start
  int last_forward_use = 0;  // operation, the one that makes it at the earliest
  int used_again_by = 0;     // a later operation
  bool convolution_input = false;
  int read_until = 0;  // the last operation that reads it, live until its end; used_again_by at the earliest
};

struct TensorJob {
  std::vector<TimedOperation> operations = {};  // of one step, in order
  std::vector<HeldTensor> tensors = {};
  PcieLink link = {};
};

struct TensorChoice {
  static constexpr int kKept = -1;
  // The operation at whose start the fetch is issued: after last_forward_use, at the latest used_again_by, which then waits for all of it.
  int fetched_at = kKept;
  bool operator==(const TensorChoice&) const = default;
};

struct TensorTiming {
  Seconds end = {};
  Bytes peak = {};
  double byte_seconds = 0;           // live bytes over time
  std::vector<Seconds> starts = {};  // [operation]
  std::vector<Seconds> sent = {};    // [tensor]: when it is in host memory; 0: kept
  bool operator==(const TensorTiming&) const = default;
};

struct TensorPlan {
  std::vector<TensorChoice> choices = {};
  bool waits_for_copies = false;  // each operation ends when the copies that were issued at it are done, as in vDNN
  TensorTiming timing = {};
  bool operator==(const TensorPlan&) const = default;
};

TensorTiming tensor_timing(const TensorJob& job, const std::vector<TensorChoice>& choices, bool waits_for_copies);

// All tensors, or the inputs of convolutions only; those with nothing between their two uses are kept.
enum class VdnnScope : std::uint8_t { All, ConvolutionInputs };
TensorPlan vdnn_offload(const TensorJob& job, VdnnScope scope);

struct TensorSearch {
  std::int64_t timings =
      1'000'000'000;  // most choices that each of the two searches times, rounded up to whole rounds of changes
};
// While the peak is above the budget, the kept tensor with the longest free time is sent. Its free time is that from the end of its copy out
// to the latest start of a fetch that is done before the second use. Then one tensor at a time is changed (kept, on demand, fetched an
// operation earlier or later) as long as this takes less above the budget or makes the step faster. The same changes start from sending
// everything by vDNN's rule, too, and the faster plan is the answer: where sending everything fits, the answer is never slower than that.
// Infeasible: says the smallest peak that was met.
std::variant<TensorPlan, Infeasible> free_time_offload(const TensorJob& job, Bytes budget, const TensorSearch& search = {});

}  // namespace foreshard
