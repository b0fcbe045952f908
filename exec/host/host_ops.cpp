// From an instruction to its kernel, and the staging of operands that are not stored in the arithmetic type.
#include "exec/host/host_ops.h"

#include <algorithm>
#include <array>
#include <variant>

#include "core/base/error.h"
#include "exec/arithmetic/host_blas.h"
#include "exec/arithmetic/host_convert.h"
#include "exec/arithmetic/loss_scale_state.h"
#include "exec/host/host_kernel.h"

namespace foreshard {

// The table of kernels: makers, one per operator, in exec/host/host_*.cpp, and which operator each is for. They throw Error for a form that
// the host cannot run.
namespace host {

template <class T>
Kernel<T> make_matmul(const Form& form);
template <class T>
Kernel<T> make_scores(const Form& form);
template <class T>
Kernel<T> make_weighted_values(const Form& form);
template <class T>
Kernel<T> make_softmax(const Form& form);
template <class T>
Kernel<T> make_attention(const Form& form);
template <class T>
Kernel<T> make_merge_attention(const Form& form);
template <class T>
Kernel<T> make_head_parts(const Form& form);
template <class T>
Kernel<T> make_rope(const Form& form);
template <class T>
Kernel<T> make_norm(const Form& form);
template <class T>
Kernel<T> make_activation(const Form& form);
template <class T>
Kernel<T> make_dropout(const Form& form);
template <class T>
Kernel<T> make_add(const Form& form);
template <class T>
Kernel<T> make_token_embedding(const Form& form);
template <class T>
Kernel<T> make_position_embedding(const Form& form);
template <class T>
Kernel<T> make_sample(const Form& form);
template <class T>
Kernel<T> make_cross_entropy(const Form& form);
template <class T>
Kernel<T> make_sum_of_squares(const Form& form);
template <class T>
Kernel<T> make_conv2d(const Form& form);
template <class T>
Kernel<T> make_batch_norm(const Form& form);
template <class T>
Kernel<T> make_pool(const Form& form);
template <class T>
Kernel<T> make_adam(const Form& form);
template <class T>
Kernel<T> make_sgd(const Form& form);
template <class T>
Kernel<T> make_grad_norm(const Form& form);
template <class T>
Kernel<T> make_clip_scale(const Form& form);
template <class T>
Kernel<T> make_judge_overflow(const Form& form);
template <class T>
Kernel<T> make_balance_experts(const Form& form);
template <class T>
Kernel<T> make_cast(const Form& form);
template <class T>
Kernel<T> make_zero(const Form& form);
template <class T>
Kernel<T> make_encode(const Form& form);
template <class T>
Kernel<T> make_decode(const Form& form);
template <class T>
Kernel<T> make_token_scores(const Form& form);
template <class T>
Kernel<T> make_keep_tokens(const Form& form);
template <class T>
Kernel<T> make_take_rows(const Form& form);
template <class T>
Kernel<T> make_put_rows(const Form& form);
template <class T>
Kernel<T> make_head_norm(const Form& form);
template <class T>
Kernel<T> make_scale(const Form& form);
template <class T>
Kernel<T> make_latent_heads(const Form& form);
template <class T>
Kernel<T> make_route(const Form& form);
template <class T>
Kernel<T> make_dispatch(const Form& form);
template <class T>
Kernel<T> make_combine(const Form& form);
template <class T>
Kernel<T> make_send_once(const Form& form);
template <class T>
Kernel<T> make_grouped_matmul(const Form& form);

}  // namespace host

namespace {

using host::Form;
using host::Kernel;

constexpr std::size_t kOperands = 64;  // of one instruction, reads or writes
constexpr std::int64_t kAlign = 64;

template <class T>
struct MakeKernel {
  const Form& form;

  Kernel<T> operator()(const ops::MatMul&) const { return host::make_matmul<T>(form); }
  Kernel<T> operator()(const ops::Scores&) const { return host::make_scores<T>(form); }
  Kernel<T> operator()(const ops::WeightedValues&) const { return host::make_weighted_values<T>(form); }
  Kernel<T> operator()(const ops::Attention&) const { return host::make_attention<T>(form); }
  Kernel<T> operator()(const ops::Softmax&) const { return host::make_softmax<T>(form); }
  Kernel<T> operator()(const ops::Norm&) const { return host::make_norm<T>(form); }
  Kernel<T> operator()(const ops::Activation&) const { return host::make_activation<T>(form); }
  Kernel<T> operator()(const ops::Dropout&) const { return host::make_dropout<T>(form); }
  Kernel<T> operator()(const ops::Add&) const { return host::make_add<T>(form); }
  Kernel<T> operator()(const ops::Rope&) const { return host::make_rope<T>(form); }
  Kernel<T> operator()(const ops::TokenEmbedding&) const { return host::make_token_embedding<T>(form); }
  Kernel<T> operator()(const ops::PositionEmbedding&) const { return host::make_position_embedding<T>(form); }
  Kernel<T> operator()(const ops::Sample&) const { return host::make_sample<T>(form); }
  Kernel<T> operator()(const ops::CrossEntropy&) const { return host::make_cross_entropy<T>(form); }
  Kernel<T> operator()(const ops::SumOfSquares&) const { return host::make_sum_of_squares<T>(form); }
  Kernel<T> operator()(const ops::Conv2d&) const { return host::make_conv2d<T>(form); }
  Kernel<T> operator()(const ops::BatchNorm&) const { return host::make_batch_norm<T>(form); }
  Kernel<T> operator()(const ops::MaxPool&) const { return host::make_pool<T>(form); }
  Kernel<T> operator()(const ops::AvgPool&) const { return host::make_pool<T>(form); }
  Kernel<T> operator()(const ops::Adam&) const { return host::make_adam<T>(form); }
  Kernel<T> operator()(const ops::Sgd&) const { return host::make_sgd<T>(form); }
  Kernel<T> operator()(const ops::GradNorm&) const { return host::make_grad_norm<T>(form); }
  Kernel<T> operator()(const ops::ClipScale&) const { return host::make_clip_scale<T>(form); }
  Kernel<T> operator()(const ops::JudgeOverflow&) const { return host::make_judge_overflow<T>(form); }
  Kernel<T> operator()(const ops::BalanceExperts&) const { return host::make_balance_experts<T>(form); }
  Kernel<T> operator()(const ops::Cast&) const { return host::make_cast<T>(form); }
  Kernel<T> operator()(const ops::Zero&) const { return host::make_zero<T>(form); }
  Kernel<T> operator()(const ops::MergeAttention&) const { return host::make_merge_attention<T>(form); }
  Kernel<T> operator()(const ops::HeadParts&) const { return host::make_head_parts<T>(form); }
  Kernel<T> operator()(const ops::Encode&) const { return host::make_encode<T>(form); }
  Kernel<T> operator()(const ops::Decode&) const { return host::make_decode<T>(form); }
  Kernel<T> operator()(const ops::TokenScores&) const { return host::make_token_scores<T>(form); }
  Kernel<T> operator()(const ops::KeepTokens&) const { return host::make_keep_tokens<T>(form); }
  Kernel<T> operator()(const ops::TakeRows&) const { return host::make_take_rows<T>(form); }
  Kernel<T> operator()(const ops::PutRows&) const { return host::make_put_rows<T>(form); }
  Kernel<T> operator()(const ops::HeadNorm&) const { return host::make_head_norm<T>(form); }
  Kernel<T> operator()(const ops::Scale&) const { return host::make_scale<T>(form); }
  Kernel<T> operator()(const ops::LatentHeads&) const { return host::make_latent_heads<T>(form); }
  Kernel<T> operator()(const ops::Route&) const { return host::make_route<T>(form); }
  Kernel<T> operator()(const ops::Dispatch&) const { return host::make_dispatch<T>(form); }
  Kernel<T> operator()(const ops::Combine&) const { return host::make_combine<T>(form); }
  Kernel<T> operator()(const ops::SendOnce&) const { return host::make_send_once<T>(form); }
  Kernel<T> operator()(const ops::GroupedMatMul&) const { return host::make_grouped_matmul<T>(form); }
};

struct Place {
  bool staged = false;
  std::int64_t at = 0;  // bytes into the workspace
};

template <class T>
struct Ready {
  Kernel<T> kernel = {};
  std::vector<Place> in = {}, out = {};
  std::int64_t scratch_at = 0, bytes = 0;
  bool reload = false;  // outputs hold something that the kernel adds to

  explicit Ready(const Form& form) : kernel(std::visit(MakeKernel<T>{form}, form.what.op)) {
    reload = form.what.accumulate || form.what.accumulate_weights;
    for (const Operand& operand : form.reads) in.push_back(place(operand));
    for (const Operand& operand : form.writes) out.push_back(place(operand));
    scratch_at = take(kernel.scratch);
  }

  std::int64_t take(std::int64_t elements) {
    const std::int64_t at = bytes;
    bytes = round_up(bytes + elements * static_cast<std::int64_t>(sizeof(T)), kAlign);
    return at;
  }
  Place place(const Operand& operand) {
    const bool staged = !kernel.raw && host::is_floating(operand.dtype) && !host::is_native<T>(operand.dtype);
    return {staged, staged ? take(operand.elements) : 0};
  }

  void run(std::span<const Operand> reads, std::span<const Operand> writes, std::byte* workspace,
           const OpArguments& arguments) const {
    std::array<const T*, kOperands> from = {};
    std::array<T*, kOperands> to = {};
    const auto pointer = [&](const Operand& operand, const Place& place) -> T* {
      if (place.staged) return reinterpret_cast<T*>(workspace + place.at);
      return host::is_native<T>(operand.dtype) ? reinterpret_cast<T*>(operand.data) : nullptr;
    };
    for (std::size_t i = 0; i < reads.size(); ++i) {
      T* at = pointer(reads[i], in[i]);
      if (in[i].staged) host::load(reads[i], 0, reads[i].elements, at);
      from[i] = at;
    }
    for (std::size_t i = 0; i < writes.size(); ++i) {
      to[i] = pointer(writes[i], out[i]);
      if (out[i].staged && reload) host::load(writes[i], 0, writes[i].elements, to[i]);
    }
    kernel.run({{from.data(), reads.size()},
                {to.data(), writes.size()},
                reads,
                writes,
                reinterpret_cast<T*>(workspace + scratch_at),
                arguments});
    for (std::size_t i = 0; i < writes.size(); ++i)
      if (out[i].staged) host::store<T>(to[i], writes[i].elements, writes[i], 0);
  }
};

bool in_double(const Form& form) {
  const auto is_double = [](const Operand& operand) { return operand.dtype == DType::F64; };
  return std::any_of(form.reads.begin(), form.reads.end(), is_double) ||
         std::any_of(form.writes.begin(), form.writes.end(), is_double);
}

std::variant<Ready<float>, Ready<double>> make_ready(const Form& form) {
  if (form.reads.size() > kOperands || form.writes.size() > kOperands)
    form.refuse(std::to_string(std::max(form.reads.size(), form.writes.size())) + " operands", "at most 64");
  for (const auto& operands : {form.reads, form.writes})
    for (const Operand& operand : operands)
      if (is_code(operand.dtype))
        form.refuse(std::string("an operand in ") + name_of(operand.dtype), "fp64, fp32, bf16 or fp16 on the host");
  if (in_double(form)) return Ready<double>(form);
  return Ready<float>(form);
}

}  // namespace

// With a dynamic loss scale the last read is its state, of which the kernels know nothing.
static bool scales_dynamically(const Form& form) {
  if (!form.what.dynamic_scale) return false;
  if (form.reads.empty() || form.reads.back().dtype != DType::F32 || form.reads.back().elements < kLossScaleFloats)
    form.refuse("no state of the loss scale", std::to_string(kLossScaleFloats) + " fp32 numbers as the last read");
  return true;
}

struct HostOp::Prepared {
  bool dynamic_scale = false, factors = false;
  Phase phase = Phase::Forward;
  std::variant<Ready<float>, Ready<double>> ready;
};

HostOp::HostOp(const Compute& what, std::span<const Operand> reads, std::span<const Operand> writes) {
  const bool dynamic = scales_dynamically(Form{what, reads, writes});
  if (dynamic) reads = reads.first(reads.size() - 1);
  const bool factors = host::has_factors(what, writes);  // here they lie in the workspace, in the arithmetic type
  if (factors) writes = writes.first(writes.size() - 1);
  const Form form{what, reads, writes};
  prepared_ = std::make_unique<const Prepared>(Prepared{dynamic, factors, what.phase, make_ready(form)});
  (void)host::blas_name();  // opens the library here, so that the first run allocates nothing either
}
HostOp::HostOp(HostOp&&) noexcept = default;
HostOp& HostOp::operator=(HostOp&&) noexcept = default;
HostOp::~HostOp() = default;

Bytes HostOp::workspace() const {
  return std::visit([](const auto& ready) { return Bytes{ready.bytes}; }, prepared_->ready);
}

void HostOp::run(std::span<const Operand> reads, std::span<const Operand> writes, std::span<std::byte> workspace,
                 const OpArguments& arguments) const {
  FS_ASSERT(static_cast<std::int64_t>(workspace.size()) >= this->workspace().value);
  OpArguments scaled = arguments;
  if (prepared_->dynamic_scale) {
    const LossScaleState state = read_loss_scale(reads.back());
    if (prepared_->phase == Phase::Update && state.skips != 0) return;
    scaled = with_loss_scale(arguments, state, prepared_->phase);
    reads = reads.first(reads.size() - 1);
  }
  if (prepared_->factors) writes = writes.first(writes.size() - 1);
  std::visit(
      [&](const auto& ready) {
        FS_ASSERT(reads.size() == ready.in.size() && writes.size() == ready.out.size());
        ready.run(reads, writes, workspace.data(), scaled);
      },
      prepared_->ready);
}

void run_compute(const Compute& what, std::span<const Operand> reads, std::span<const Operand> writes,
                 const OpArguments& arguments) {
  const HostOp op(what, reads, writes);
  struct alignas(kAlign) Line {
    std::byte bytes[kAlign];
  };
  std::vector<Line> workspace(static_cast<std::size_t>(ceil_div(op.workspace().value, kAlign)));
  op.run(reads, writes, std::as_writable_bytes(std::span(workspace)), arguments);
}

}  // namespace foreshard
