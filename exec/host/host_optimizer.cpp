// Adam, AdamW and SGD with momentum on a flat slice, in pieces that stay in cache between load, step and store.
//   Adam   Kingma & Ba 2015, algorithm 1; AdamW   Loshchilov & Hutter 2019, algorithm 2, with eps outside the root as PyTorch
#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/start_thread.h"
#include "exec/arithmetic/host_convert.h"
#include "exec/arithmetic/loss_scale_state.h"
#include "exec/host/host_kernel.h"

namespace foreshard::host {

namespace {

constexpr std::int64_t kPiece = 1024;
constexpr std::int64_t kLeastPerThread = 64 * kPiece;  // some tens of microseconds, as long as a thread takes to start

// body(begin, end) for parts of 0 .. elements, whole pieces, on as many threads as have enough to do; the calling one takes the first.
template <class F>
void in_parts(std::int64_t elements, int threads, const F& body) {
  const std::int64_t parts = std::clamp<std::int64_t>(elements / kLeastPerThread, 1, std::max(1, threads));
  const std::int64_t each = round_up((elements + parts - 1) / parts, kPiece);
  std::vector<std::thread> others;
  others.reserve(static_cast<std::size_t>(parts) - 1);  // one part allocates nothing
  for (std::int64_t begin = each; begin < elements; begin += each) {
    const std::int64_t end = std::min(elements, begin + each);
    std::thread other = try_thread([&body, begin, end] { body(begin, end); });
    if (other.joinable())
      others.push_back(std::move(other));
    else
      body(begin, end);  // the system starts no more threads
  }
  body(0, std::min(elements, each));
  for (std::thread& other : others) other.join();
}

// Operands of an update by their meaning; -1: the strategy has none.
struct UpdateOperands {
  int gradient = 0, master = -1, momentum = -1, variance = -1, value = -1;  // gradient: of reads; others: of writes
};

// Without a master copy the value itself is read, so it is the last read.
UpdateOperands update_operands(const Form& form, bool adam) {
  if (form.reads.empty() || form.writes.empty()) form.refuse("no operands", "gradient, states and value");
  const int writes = static_cast<int>(form.writes.size()), reads = static_cast<int>(form.reads.size());
  UpdateOperands at;
  int next = 0;
  if (reads == writes) at.master = next++;  // reads: gradient and states; writes: states and value
  if (next < writes - 1) at.momentum = next++;
  if (next < writes - 1) at.variance = next++;
  at.value = next++;
  const bool complete = adam ? at.variance >= 0 : at.variance < 0;
  if (next != writes || !complete || (at.master < 0 && reads != writes + 1))
    form.refuse(std::to_string(reads) + " reads and " + std::to_string(writes) + " writes",
                adam ? "gradient, [master], momentum, variance, [value]" : "gradient, [master], [momentum], [value]");
  return at;
}

// A piece of an operand in the arithmetic type: the stored bytes themselves, or a copy.
template <class T>
class Piece {
 public:
  Piece(const Operand* operand, std::int64_t first, std::int64_t count, bool read, T* copy)
      : operand_(operand), first_(first), count_(count), at_(copy), native_(operand && is_native<T>(operand->dtype)) {
    if (native_)
      at_ = reinterpret_cast<T*>(operand->data) + first;
    else if (operand && read)
      load(*operand, first, count, copy);
  }
  T* data() const { return at_; }
  void put() const {
    if (operand_ && !native_) store<T>(at_, count_, *operand_, first_);
  }

 private:
  const Operand* operand_;
  std::int64_t first_, count_;
  T* at_;
  bool native_;
};

// The numbers of a step are worked out once, before its pieces.
template <class T>
class AdamStep {
 public:
  AdamStep(const ops::Adam& op, const OpArguments& a) {
    const OptimizerSettings& o = a.optimizer;
    const double rate = o.learning_rate * op.rate.factor(a.step);
    gradient_ = static_cast<T>(1 / a.loss_scale);
    keep_ = static_cast<T>(o.decoupled_decay ? 1 - rate * o.weight_decay : 1.0);
    decay_ = static_cast<T>(o.decoupled_decay ? 0.0 : o.weight_decay);
    beta1_ = static_cast<T>(o.beta1), beta2_ = static_cast<T>(o.beta2), eps_ = static_cast<T>(o.eps);
    rest1_ = static_cast<T>(1 - o.beta1), rest2_ = static_cast<T>(1 - o.beta2);
    const double steps = static_cast<double>(a.step);
    step_ = static_cast<T>(rate / (1 - std::pow(o.beta1, steps)));
    moments_ = op.frozen_after > 0;
    frozen_ = moments_ && a.step > op.frozen_after;
    const double seen = frozen_ ? static_cast<double>(op.frozen_after) : steps;
    root_ = static_cast<T>(1 / std::sqrt(1 - std::pow(o.beta2, seen)));
  }
  void run(std::int64_t count, const T* __restrict gradient, T* __restrict m, T* __restrict v, T* __restrict p) const {
    if (moments_) return run_moments(count, gradient, m, v, p);
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      const T g = gradient[i] * gradient_ + decay_ * p[i];
      m[i] = beta1_ * m[i] + rest1_ * g;
      v[i] = beta2_ * v[i] + rest2_ * g * g;
      p[i] = keep_ * p[i] - step_ * m[i] / (std::sqrt(v[i]) * root_ + eps_);
    }
  }

 private:
  // `next`: the first moment of this step, from which the gradient follows.
  void run_moments(std::int64_t count, const T* __restrict next, T* __restrict m, T* __restrict v, T* __restrict p) const {
    for (std::int64_t i = 0; i < count; ++i) {
      const T moment = next[i] * gradient_ + rest1_ * decay_ * p[i];
      const T g = (moment - beta1_ * m[i]) / rest1_;
      if (!frozen_) v[i] = beta2_ * v[i] + rest2_ * g * g;
      m[i] = moment;
      p[i] = keep_ * p[i] - step_ * m[i] / (std::sqrt(v[i]) * root_ + eps_);
    }
  }

  T gradient_, keep_, decay_, beta1_, beta2_, rest1_, rest2_, step_, root_, eps_;
  bool moments_ = false, frozen_ = false;
};

// Decay is added to the gradient, as PyTorch's SGD does. v = momentum v + g; p -= rate v.
template <class T>
class SgdStep {
 public:
  SgdStep(const ops::Sgd& op, const OpArguments& a)
      : gradient_(static_cast<T>(1 / a.loss_scale)),
        decay_(static_cast<T>(a.optimizer.weight_decay)),
        momentum_(static_cast<T>(a.optimizer.momentum)),
        rate_(static_cast<T>(a.optimizer.learning_rate * op.rate.factor(a.step))) {}
  void run(std::int64_t count, const T* gradient, T* velocity, T*, T* p) const {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      const T g = gradient[i] * gradient_ + decay_ * p[i];
      const T v = velocity ? momentum_ * velocity[i] + g : g;
      if (velocity) velocity[i] = v;
      p[i] -= rate_ * v;
    }
  }

 private:
  T gradient_, decay_, momentum_, rate_;
};

// Elements of the slice: the operands that hold more than a slice hold all of them one after the other.
std::int64_t slice_elements(const Form& form) {
  std::int64_t smallest = form.reads[0].elements;
  for (const auto& operands : {form.reads, form.writes})
    for (const Operand& operand : operands) smallest = std::min(smallest, operand.elements);
  if (form.what.shapes.empty()) return smallest;  // host compute has no shapes
  const std::int64_t elements = form.dims(0, 1)[0];
  if (smallest < elements) form.refuse(std::to_string(smallest) + " elements", "at least " + std::to_string(elements));
  return elements;
}

template <class T, class Step, class Operator>
void run_update(const Operator& op, const UpdateOperands& at, std::int64_t elements, bool sliced, const Call<T>& call) {
  const auto write = [&](int index) { return index < 0 ? nullptr : &call.writes[static_cast<std::size_t>(index)]; };
  const Operand *gradient = &call.reads[0], *master = write(at.master), *value = write(at.value);
  const Step step(op, call.arguments);
  const auto part = [&](std::int64_t begin, std::int64_t end) {
    alignas(64) T copies[5][kPiece];
    for (std::int64_t i = begin; i < end; i += kPiece) {
      const std::int64_t count = std::min(kPiece, end - i);
      const auto piece = [&](const Operand* operand, bool read, int copy) {
        const bool all = sliced && operand && operand->elements > elements;
        return Piece<T>(operand, (all ? call.arguments.slice * elements : 0) + i, count, read, copies[copy]);
      };
      const Piece<T> g = piece(gradient, true, 0), m = piece(write(at.momentum), true, 1),
                     v = piece(write(at.variance), true, 2);
      const Piece<T> p = piece(value, !master, 3), exact = piece(master, true, 4);
      step.run(count, g.data(), at.momentum < 0 ? nullptr : m.data(), v.data(), master ? exact.data() : p.data());
      if (master) std::copy_n(exact.data(), count, p.data());
      for (const Piece<T>* done : {&m, &v, &p, &exact}) done->put();
    }
  };
  in_parts(elements, call.arguments.threads, part);
}

template <class T, class Step, class Operator>
Kernel<T> make_update(const Form& form) {
  const UpdateOperands at = update_operands(form, std::is_same_v<Operator, ops::Adam>);
  const std::int64_t elements = slice_elements(form);
  const bool sliced = form.what.slice.valid();
  return {.run = [op = form.as<Operator>(), at, elements,
                  sliced](const Call<T>& call) { run_update<T, Step>(op, at, elements, sliced, call); },
          .raw = true};
}

}  // namespace

template <class T>
Kernel<T> make_adam(const Form& form) {
  return make_update<T, AdamStep<T>, ops::Adam>(form);
}

template <class T>
Kernel<T> make_sgd(const Form& form) {
  return make_update<T, SgdStep<T>, ops::Sgd>(form);
}

// The part of `operand` that this rank works on: all of it, or its slice of as many elements as the shape says.
Operand own_part(const Operand& operand, std::int64_t elements, bool sliced, std::int64_t slice) {
  if (!sliced || operand.elements <= elements) return operand;
  Operand part = operand;
  part.data += size_of(operand.dtype).value * slice * elements;
  part.elements = elements;
  return part;
}

// writes[0] = sum of squares of all elements read, divided by `divide`; added to it when the instruction accumulates. With a
// slice, of the own slices; of all slices together only `used` elements count.
template <class T>
Kernel<T> make_grad_norm(const Form& form) {
  if (form.writes.size() != 1) form.refuse(std::to_string(form.writes.size()) + " writes", "1");
  const bool accumulate = form.what.accumulate;
  const bool sliced = form.what.slice.valid();
  const std::int64_t elements = sliced ? form.dims(0, 1)[0] : 0;
  const auto& op = form.as<ops::GradNorm>();
  if (op.divide < 1) form.refuse("divide=" + std::to_string(op.divide), "at least 1");
  const auto divide = static_cast<double>(op.divide);
  const std::int64_t used = op.used > 0 ? op.used : INT64_MAX;
  return {.run =
              [accumulate, sliced, elements, divide, used](const Call<T>& call) {
                T values[kPiece];
                double sum = 0;
                for (const Operand& whole : call.reads) {
                  const Operand operand = own_part(whole, elements, sliced, call.arguments.slice);
                  const std::int64_t counted = std::min(operand.elements, used - call.arguments.slice * elements);
                  for (std::int64_t i = 0; i < counted; i += kPiece) {
                    const std::int64_t count = std::min(kPiece, counted - i);
                    load(operand, i, count, values);
                    double part = 0;
#pragma omp simd reduction(+ : part)
                    for (std::int64_t j = 0; j < count; ++j)
                      part += static_cast<double>(values[j]) * static_cast<double>(values[j]);
                    sum += part;
                  }
                }
                T total = static_cast<T>(sum / divide), before = 0;
                if (accumulate) load(call.writes[0], 0, 1, &before);
                total += before;
                store(&total, 1, call.writes[0], 0);
              },
          .raw = true};
}

// Multiplies all elements written by min(1, max_norm / norm), reads[0] being the square of the norm (Pascanu et al. 2013).
// Gradients carry the loss scale, so their norm does too.
template <class T>
Kernel<T> make_clip_scale(const Form& form) {
  if (form.reads.empty()) form.refuse("no reads", "the sum of squares");
  const double limit = form.as<ops::ClipScale>().max_norm;
  const bool sliced = form.what.slice.valid();
  const std::int64_t elements = sliced ? form.dims(0, 1)[0] : 0;
  return {.run =
              [limit, sliced, elements](const Call<T>& call) {
                T square = 0, values[kPiece];
                load(call.reads[0], 0, 1, &square);
                const double norm = std::sqrt(static_cast<double>(square)) / call.arguments.loss_scale;
                if (!(norm > limit)) return;
                const T factor = static_cast<T>(limit / norm);
                for (const Operand& whole : call.writes) {
                  const Operand operand = own_part(whole, elements, sliced, call.arguments.slice);
                  for (std::int64_t i = 0; i < operand.elements; i += kPiece) {
                    const std::int64_t count = std::min(kPiece, operand.elements - i);
                    load(operand, i, count, values);
#pragma omp simd
                    for (std::int64_t j = 0; j < count; ++j) values[j] *= factor;
                    store<T>(values, count, operand, i);
                  }
                }
              },
          .raw = true};
}

OverflowRule overflow_rule(const Form& form) {
  const double start = form.as<ops::JudgeOverflow>().start;
  const OverflowRule rule{.growth = form.as<ops::JudgeOverflow>().growth,
                          .least = start > 1 ? -std::floor(std::log2(start)) : 0};
  if (rule.growth < 1) form.refuse("growth=" + std::to_string(rule.growth), "at least 1 step");
  form.expect({1}, {kLossScaleFloats});
  if (form.writes[0].dtype != DType::F32) form.refuse("a state in another format", "fp32");
  return rule;
}

// reads[0]: the square of the norm of all gradients; writes[0]: the state of the loss scale, which follows it.
template <class T>
Kernel<T> make_judge_overflow(const Form& form) {
  const OverflowRule rule = overflow_rule(form);
  return {.run =
              [rule](const Call<T>& call) {
                T square = 0;
                load(call.reads[0], 0, 1, &square);
                const LossScaleState before = read_loss_scale(call.writes[0]);
                write_loss_scale(judged(before, std::isfinite(square), rule.growth, rule.least), call.writes[0]);
              },
          .raw = true};
}

template Kernel<float> make_judge_overflow(const Form&);
template Kernel<double> make_judge_overflow(const Form&);
template Kernel<float> make_adam(const Form&);
template Kernel<double> make_adam(const Form&);
template Kernel<float> make_sgd(const Form&);
template Kernel<double> make_sgd(const Form&);
template Kernel<float> make_grad_norm(const Form&);
template Kernel<double> make_grad_norm(const Form&);
template Kernel<float> make_clip_scale(const Form&);
template Kernel<double> make_clip_scale(const Form&);

}  // namespace foreshard::host
