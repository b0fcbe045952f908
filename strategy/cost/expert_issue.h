// How the host issues the kernels of layers with experts, and when it waits for the device (docs/cost-model.md, "Experts").
#pragma once

#include <algorithm>
#include <optional>

#include "core/plan/plan.h"
#include "strategy/cost/framework_preset.h"

namespace foreshard {

// Whether the segment has matrix products of experts, and whether its dispatcher sends tokens once (core/op/dispatcher.h).
bool has_experts(const Segment& segment);
bool sends_once(const Segment& segment);
// Whether its dispatch has a capacity, so that tokens may be dropped and rows are padded; empty: it dispatches none.
std::optional<bool> has_capacity(const Segment& segment);

// Number of kernels that the host launches for the operator: OpStyle::kernels, which the pieces of a loss whose vocabulary ranks share have
// together; for a grouped product times the number of experts if ExpertIssue::each_expert, and in 8 bits times
// ExpertIssue::eight_bit_kernels (casts and scales).
double issued_kernels(const FrameworkPreset& preset, const Compute& what);

// Number of Python calls that launch no kernel, if the operator is a product of experts or its weight gradient
// (ExpertIssue::calls_per_weight).
double calls_for_weights(const FrameworkPreset& preset, const Compute& what);

// Time of the host to issue the operator; `experts`: in a segment with experts. There the forward of a linear layer takes what
// its module does, and a rotation of several kernels is operators of PyTorch, each of which takes as long as a kernel of the
// experts.
Seconds issue_time(const FrameworkPreset& preset, const Compute& what, bool experts);

// Number of tensors, on average over the ranks that cut the update, for each of which an update of narrow states has kernels of its own
// (OpStyles::narrow_optimizer). 1 for other operators. Megatron has one weight for gate and up of an expert, and one behind them.
double updated_tensors(const Plan& plan, const Role& role, const FrameworkPreset& preset, const Compute& what,
                       const Instruction& run);

// Number of kernels after the operator's first, which the device runs one after the other: casts and scales of each expert's operands, and
// the other kernels of the operator's style.
double further_kernels(const FrameworkPreset& preset, const Compute& what);

// For a grouped product that the host issues expert by expert on `kStreams` streams: `what` is the product of kStreams experts, which run
// together; the whole operator takes `times` as long. Empty: another operator, or at most kStreams experts.
inline constexpr std::int64_t kStreams = 4;  // Transformer Engine, transformer_engine/common/gemm/cublaslt_gemm.cu, num_streams
struct PartOfExperts {
  Compute what = {};
  double times = 1;
};
std::optional<PartOfExperts> part_of_experts(const FrameworkPreset& preset, const Compute& what);

// Whether the host waits for the device before it issues the operator: for the number of rows of each expert (a dispatch without a
// capacity), or for the copy of a scalar (a clamped activation). With a capacity the sizes are known; the backward uses the sizes of the
// forward.
bool waits_for_device(const FrameworkPreset& preset, const Compute& what);

// What HybridEP sends beside the rows of tokens that go once to each part, in place of the plan's messages: a score for each
// expert of the part instead of each choice, by the kernel that sends the rows; and from all ranks to all the map of which token
// chose which expert, a byte each, instead of the choices of the tokens that are sent.
struct BesideRows {
  Bytes scores = {}, choices = {};           // of the plan's messages
  double more_scores = 1, more_choices = 1;  // bytes of HybridEP's over those
};
BesideRows beside_rows(const Compute& send_once);
std::optional<BesideRows> beside_rows_of(const Segment& segment);  // of its first ops::SendOnce
// `cost` of the all-to-all `what`, or of HybridEP's message in its place.
Cost cost_beside(const BesideRows& beside, const Collective& what, Cost cost);

// What separate copies beside a grouped product take, or the bytes that they move: of the rows before the first product (not `transposed`)
// and of those behind the second, and of their gradients.
// Sorted by expert after they arrived, also from the ranks that share the experts, and sorted back. None in segments that send tokens once:
// there one pass makes and sorts the rows.
// With a capacity that is a plain copy (transpose and contiguous), otherwise one kernel or, in older frameworks, a concatenation of pieces.
Seconds sorting_time(const Gpu& gpu, const FrameworkPreset& preset, const Compute& what, bool capacity);
// Padded, the rows of each expert, to the multiple that 8-bit products need.
Bytes padded_bytes(const FrameworkPreset& preset, const Compute& what);
// Joined, where each expert is a module of its own: the results in the forward, the gradients of the rows in the backward. The other ways
// are views.
Bytes joined_bytes(const FrameworkPreset& preset, const Compute& what);

// Of the backward of a grouped product behind the activation: what the kernel reads that makes the gradients of the scores there, its input
// of two halves and its gradient, in 16 bits.
Bytes scored_bytes(const FrameworkPreset& preset, const Compute& what);
// Of the backward of a combination: the rows, which only the gradients of its scores need.
Bytes unscored_bytes(const FrameworkPreset& preset, const Compute& what);

// The kernels that add the biases of experts to the results of the operator or, in the backward, sum their gradients, as one instruction.
// Empty: none.
std::optional<Compute> bias_kernels(const Gpu& gpu, const FrameworkPreset& preset, const Compute& what, bool biased);

// The number of these kernels, over all experts of the operator.
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
  // Seconds by which the segment takes longer than its device time. A host that never waits is ahead of the device by what it issued during
  // earlier segments, so that only its sum counts.
  double exposed() const { return waited_ ? device_ - busy_ : host_ - busy_; }

 private:
  double host_ = 0, device_ = 0, busy_ = 0;
  bool waited_ = false;
};

}  // namespace foreshard
