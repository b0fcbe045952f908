// How the host issues the kernels of layers with experts, and when it waits for the device (docs/cost-model.md, "Experts").
#pragma once

#include <algorithm>
#include <optional>

#include "core/plan/plan.h"
#include "strategy/cost/framework_preset.h"

namespace foreshard {

// Whether the segment has products of experts, and whether it sends tokens once (core/op/dispatcher.h).
bool has_experts(const Segment& segment);
bool sends_once(const Segment& segment);
// Whether it dispatches tokens without a capacity.
bool drops_none(const Segment& segment);

// Kernels that the host issues for the operator: those of its style; of a grouped product one for each expert where the preset says so,
// in 8 bits with casts and scales.
double issued_kernels(const FrameworkPreset& preset, const Compute& what);

// Calls of Python for the weights of the experts whose product or gradient of weights the operator is, without kernels.
double calls_for_weights(const FrameworkPreset& preset, const Compute& what);

// Time of the host to issue the operator; `experts`: in a segment with experts.
Seconds issue_time(const FrameworkPreset& preset, const Compute& what, bool experts);

// Kernels beside the operator's first, which the device runs one after the other: casts and scales of each expert's operands, and the other
// kernels of the operator's style.
double further_kernels(const FrameworkPreset& preset, const Compute& what);

// A grouped product that the host issues expert by expert, on `kStreams` streams: so many experts of it fill the device together, and the
// operator takes as many times as long as is the second result.
inline constexpr std::int64_t kStreams = 4;  // Transformer Engine, transformer_engine/common/gemm/cublaslt_gemm.cu, num_streams
struct PartOfExperts {
  Compute what = {};
  double times = 1;
};
std::optional<PartOfExperts> part_of_experts(const FrameworkPreset& preset, const Compute& what);

// Whether the host waits for the device before it issues the operator: until the rows of each expert are counted, or, at a clamped
// activation, for a copy of a number that it makes. With a capacity the sizes are known; backward phases use the sizes of the forward.
bool waits_for_device(const FrameworkPreset& preset, const Compute& what);

// Bytes that copies of their own move beside the operator: rows that are sorted by expert after they arrived, and sorted back. In segments
// that send tokens once there are none: the same pass makes and sorts the rows.
Bytes sorted_bytes(const FrameworkPreset& preset, const Compute& what);

// Bytes that copies of their own move to pad the rows of each expert to a multiple that products in 8 bits take: the rows before the first
// product (not `transposed`) and those behind the second, and their gradients.
Bytes padded_bytes(const FrameworkPreset& preset, const Compute& what);

// The kernels that add the biases of experts to the results of the operator or, in the backward, sum up their gradients. Empty: none.
std::optional<Compute> bias_kernels(const FrameworkPreset& preset, const Compute& what, bool biased);

// Kernels of these, of all experts of the operator.
double kernels_of_biases(const FrameworkPreset& preset, const Compute& what);

// Host and device side by side: the host issues operators one after the other, the device runs each when it is issued and the one before
// has ended. In seconds.
class IssueClock {
 public:
  explicit IssueClock(double host) : host_(host) {}
  // The host waits until the device has run what was issued before.
  void wait() { host_ = std::max(host_, device_), waited_ = true; }
  void run(double issue, double busy) {
    host_ += issue, busy_ += busy;
    device_ = std::max(device_, host_) + busy;
  }
  // Time that the segment takes longer than the device's own. A host that never waits is ahead of the device by what it issued during
  // earlier segments, so that only its sum counts.
  double exposed() const { return waited_ ? device_ - busy_ : host_ - busy_; }

 private:
  double host_ = 0, device_ = 0, busy_ = 0;
  bool waited_ = false;
};

}  // namespace foreshard
