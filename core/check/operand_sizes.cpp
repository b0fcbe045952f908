#include "core/check/operand_sizes.h"

#include <algorithm>
#include <array>

#include "core/check/operand_forms.h"

namespace foreshard {
namespace operand_forms {
namespace {

template <class Operator, class... Others>
constexpr bool one_of = (std::is_same_v<Operator, Others> || ...);

// Numbers of dimensions of the shapes of an operator; 0: any but none; -1: no such shape.
template <class Operator>
constexpr std::array<int, 3> dimensions_of() {
  using namespace ops;
  if constexpr (one_of<Operator, MatMul, Scores, WeightedValues, BatchNorm, MergeAttention, TokenScores, TakeRows, PutRows>)
    return {4, -1, -1};
  if constexpr (one_of<Operator, Attention, MaxPool, AvgPool>) return {4, 4, -1};
  if constexpr (one_of<Operator, ops::Dispatch, ops::Combine, SendOnce, GroupedMatMul>) return {4, 2, -1};
  if constexpr (one_of<Operator, Conv2d>) return {4, 4, 4};
  if constexpr (one_of<Operator, TokenEmbedding, PositionEmbedding, KeepTokens, HeadNorm, Route>) return {3, -1, -1};
  if constexpr (one_of<Operator, Norm, Activation, CrossEntropy, BalanceExperts>) return {2, -1, -1};
  return {0, -1, -1};
}

// ---- products and sums ------------------------------------------------------------------------------------------------------
// Several outputs are columns one after the other; `parts` of them, found by their sizes.
OperandSizes sizes(const ops::MatMul& op, const Found& at) {
  const std::int64_t m = at.dims(0)[1], n = at.dims(0)[2], k = at.dims(0)[3];
  const std::int64_t x = op.first_token ? kAnySize : times(m, k);  // rows of all tokens, of which it uses some
  OperandSizes all;
  if (at.dims(0)[0] != 1) return {.wrong = "a batch of " + std::to_string(at.dims(0)[0]) + " products, 1 is known"};
  const auto columns = [&](const Sizes& operands, std::size_t most) {
    Sizes parts;
    std::int64_t left = times(m, n);
    for (std::size_t i = 0; i < most && left > 0; ++i) {
      parts.push_back(std::min(left, i + 1 < most ? operands[i] : left));
      left -= parts.back();
    }
    return parts;
  };
  if (at.forward()) {
    all.reads = {x, times(n, k)};
    if (at.reads.size() > 2) all.reads.push_back(n);
    all.writes = columns(at.writes, at.writes.size());
    return all;
  }
  all.reads = columns(at.reads, std::max<std::size_t>(at.reads.size(), 1) - (at.reads.empty() ? 0 : 1));
  if (at.phase == Phase::WeightGrad) {
    all.reads.push_back(x);
    all.writes = {times(n, k)};
    if (at.writes.size() > 1) all.writes.push_back(n);
    return all;
  }
  const std::size_t parts = all.reads.size();  // then [x], weight, [bias]
  if (at.reads.size() > parts + 1) all.reads.push_back(kAnySize);
  all.reads.push_back(times(n, k));
  if (at.reads.size() > all.reads.size()) all.reads.push_back(n);
  all.writes = {x};
  return all;
}

OperandSizes sizes(const ops::Add&, const Found& at) {
  const std::int64_t size = at.all(), columns = at.dims(0).back();
  if (at.phase == Phase::WeightGrad) return {.reads = {size}, .writes = {columns}};
  if (!at.forward()) return {.reads = {size}, .writes = {size}};
  OperandSizes all{.reads = Sizes(at.reads.size(), size), .writes = {size}};
  if (at.reads.size() > 1 && at.reads.back() < size) all.reads.back() = columns;  // a bias; a place may be larger
  return all;
}

OperandSizes sizes(const ops::Scale&, const Found& at) { return {.reads = {at.all()}, .writes = {at.all()}}; }

// ---- norms, activations, dropout --------------------------------------------------------------------------------------------------
OperandSizes sizes(const ops::Norm& op, const Found& at) {
  const std::int64_t size = at.all(), h = at.dims(0)[1];
  const std::size_t weights = op.kind == NormKind::LayerNorm ? 2 : 1;
  OperandSizes all;
  if (at.forward()) {
    all = {.reads = {size}, .writes = {size}};
  } else {
    all.reads = {size, size};
    const std::size_t trained = at.phase == Phase::InputGrad ? 0 : weights;
    if (at.writes.size() > trained) all.writes.push_back(size);
    all.writes.insert(all.writes.end(), trained, h);
  }
  all.reads.insert(all.reads.end(), weights, h);
  return all;
}
OperandSizes sizes(const ops::BatchNorm&, const Found& at) {
  const std::int64_t size = at.all(), c = at.dims(0)[1];
  if (at.forward()) return {.reads = {size, c, c}, .writes = {size}};
  OperandSizes all{.reads = {size, size, c, c}, .writes = {c, c}};
  if (at.writes.size() > 2) all.writes.insert(all.writes.begin(), size);
  return all;
}
OperandSizes sizes(const ops::Activation& op, const Found& at) {
  using Function = ops::Activation::Function;
  const bool gated =
      op.function == Function::SwiGlu || op.function == Function::GeGlu || op.function == Function::ClampedSwiGlu;
  const std::int64_t y = at.all(), x = gated ? times(2, y) : y;
  return at.forward() ? OperandSizes{.reads = {x}, .writes = {y}} : OperandSizes{.reads = {y, x}, .writes = {x}};
}
OperandSizes sizes(const ops::Dropout&, const Found& at) {
  const std::int64_t size = at.all(), h = at.dims(0).back();
  if (at.forward()) {
    OperandSizes all{.reads = {size}, .writes = {size, size}};
    if (at.reads.size() > 1) all.reads.push_back(size);
    if (at.reads.size() > 2) all.reads.push_back(h);
    return all;
  }
  OperandSizes all{.reads = {size, size}};
  const bool bias = at.phase == Phase::Backward;
  if (at.writes.size() > (bias ? 1U : 0U)) all.writes.push_back(size);
  if (bias) all.reads.push_back(h), all.writes.push_back(h);
  return all;
}

// ---- ends of a model ------------------------------------------------------------------------------------------------------------
OperandSizes sizes(const ops::TokenEmbedding&, const Found& at) {
  const Sizes& d = at.dims(0);
  const std::int64_t y = times(d[0], d[1]), table = times(d[2], d[1]);
  return at.forward() ? OperandSizes{.reads = {table}, .writes = {y, d[0]}}
                      : OperandSizes{.reads = {y, d[0]}, .writes = {table}};
}
OperandSizes sizes(const ops::PositionEmbedding& op, const Found& at) {
  const std::size_t tables = (op.positions ? 1U : 0U) + (op.types ? 1U : 0U);
  OperandSizes all{.reads = {at.all()}};
  (at.forward() ? all.reads : all.writes).insert((at.forward() ? all.reads : all.writes).end(), tables, kAnySize);
  if (at.forward()) all.writes = {at.all()};
  return all;
}
OperandSizes sizes(const ops::Sample&, const Found& at) { return {.writes = {at.all()}}; }
OperandSizes sizes(const ops::CrossEntropy& op, const Found& at) {
  using Piece = ops::CrossEntropy::Piece;
  const std::int64_t size = at.all(), rows = at.dims(0)[0], both = times(2, rows);
  switch (op.piece) {
    case Piece::Whole:
      if (at.forward()) return {.reads = {size}, .writes = {size, rows, 1}};
      return {.reads = {size, rows}, .writes = {size}};
    case Piece::Max: return {.reads = {size}, .writes = {rows}};
    case Piece::Exp:
      if (at.forward()) return {.reads = {size, rows}, .writes = {size, both, rows}};
      return {.reads = {size, both, rows}, .writes = {size}};
    case Piece::Loss: return {.reads = {both, rows}, .writes = {1}};
  }
  return {};
}
OperandSizes sizes(const ops::SumOfSquares&, const Found& at) {
  return {.reads = {at.all()}, .writes = {at.forward() ? 1 : at.all()}};
}

// ---- pictures -------------------------------------------------------------------------------------------------------------------
OperandSizes sizes(const ops::Conv2d&, const Found& at) {
  const Sizes &x = at.dims(0), &w = at.dims(1), &y = at.dims(2);
  const auto fits = [&](std::int64_t in, std::int64_t out) {
    return w[2] > 0 && in + 2 * w[3] >= w[1] && (in + 2 * w[3] - w[1]) / w[2] + 1 == out;
  };
  if (x[0] != y[0] || w[0] != y[1] || !fits(x[2], y[2]) || !fits(x[3], y[3])) return {.wrong = "a result of another size"};
  const std::int64_t in = at.all(0), out = at.all(2), taps = times(w[0], x[1], w[1], w[1]);
  OperandSizes all;
  if (at.forward()) {
    all = {.reads = {in, taps}, .writes = {out}};
    if (at.reads.size() > 2) all.reads.push_back(w[0]);
  } else if (at.phase == Phase::WeightGrad) {
    all = {.reads = {out, in}, .writes = {taps}};
    if (at.writes.size() > 1) all.writes.push_back(w[0]);
  } else {
    all = {.reads = {out, kAnySize, taps}, .writes = {in}};
    if (at.reads.size() > 3) all.reads.push_back(w[0]);
    if (at.reads.size() == 2) all.reads = {out, taps};
  }
  return all;
}
OperandSizes pool_sizes(const Found& at, bool maximum) {
  const std::int64_t in = at.all(0), out = at.all(1);
  if (at.forward()) return {.reads = {in}, .writes = {out}};
  return {.reads = maximum ? Sizes{out, in} : Sizes{out}, .writes = {in}};
}
OperandSizes sizes(const ops::MaxPool&, const Found& at) { return pool_sizes(at, true); }
OperandSizes sizes(const ops::AvgPool&, const Found& at) { return pool_sizes(at, false); }

// ---- update and codes ---------------------------------------------------------------------------------------------------------------
// With a slice an operand is that part or all parts.
Sizes parts_or_all(const Sizes& found, const Found& at) {
  Sizes all;
  for (const std::int64_t each : found) all.push_back(each == at.all() ? each : times(at.all(), at.slices));
  return all;
}
OperandSizes step_sizes(const Found& at) {
  return {.reads = parts_or_all(at.reads, at), .writes = parts_or_all(at.writes, at)};
}
OperandSizes sizes(const ops::Adam&, const Found& at) { return step_sizes(at); }
OperandSizes sizes(const ops::Sgd&, const Found& at) { return step_sizes(at); }
OperandSizes sizes(const ops::GradNorm&, const Found& at) {
  return {.reads = at.reads.size() == 1 ? parts_or_all(at.reads, at) : Sizes(at.reads.size(), kAnySize), .writes = {1}};
}
OperandSizes sizes(const ops::ClipScale&, const Found& at) { return {.reads = {1}, .writes = parts_or_all(at.writes, at)}; }
OperandSizes sizes(const ops::JudgeOverflow&, const Found& at) {
  return {.reads = {1}, .writes = Sizes(at.writes.size(), kAnySize)};
}
OperandSizes sizes(const ops::Zero&, const Found& at) { return {.writes = parts_or_all(at.writes, at)}; }
OperandSizes sizes(const ops::Cast&, const Found& at) { return step_sizes(at); }
template <class Operator>
std::string shapes_wrong(const Compute& compute) {
  std::size_t expected = 0;
  for (const int rank : dimensions_of<Operator>()) expected += rank >= 0 ? 1 : 0;
  if (compute.shapes.size() < expected)
    return std::to_string(compute.shapes.size()) + " shapes, expected " + std::to_string(expected);
  for (std::size_t s = 0; s < expected; ++s) {
    const Sizes& dims = compute.shapes[s].dims;
    const int rank = dimensions_of<Operator>()[s];
    if (dims.empty() || (rank > 0 && static_cast<int>(dims.size()) != rank))
      return "shape " + std::to_string(s) + " of " + std::to_string(dims.size()) + " dimensions";
    for (const std::int64_t dim : dims)
      if (dim < 1 && !is<ops::Conv2d>(compute.op)) return "a dimension of " + std::to_string(dim);
  }
  return "";
}

// Whether the operator has a kernel of this phase.
template <class Operator>
bool has_phase(const Operator& op, Phase phase) {
  using namespace ops;
  if constexpr (one_of<Operator, Cast, Encode, Decode, Zero>) return true;
  if constexpr (Operator::of_update) return phase == Phase::Update;
  constexpr bool table = one_of<Operator, TokenEmbedding, PositionEmbedding>;
  constexpr bool fused = one_of<Operator, Norm, BatchNorm, Dropout, HeadNorm>;
  switch (phase) {
    case Phase::Forward:
    case Phase::Recompute: return true;
    case Phase::InputGrad: return !table && !one_of<Operator, ops::Sample, BatchNorm>;
    case Phase::WeightGrad: return table || one_of<Operator, MatMul, Add, Conv2d, GroupedMatMul>;
    case Phase::Backward:
      if constexpr (one_of<Operator, Attention>) return op.sinks;
      return fused;
    case Phase::Update:
    case Phase::Other: return false;
  }
  return false;
}

// An operator without a law here has operands of any size.
template <class Operator>
OperandSizes by_law(const Operator& op, const Found& at) {
  if constexpr (requires { sizes(op, at); }) return sizes(op, at);
  return {.reads = Sizes(at.reads.size(), kAnySize), .writes = Sizes(at.writes.size(), kAnySize)};
}

}  // namespace
}  // namespace operand_forms

std::optional<OperandSizes> operand_sizes(const Compute& compute, const std::vector<std::int64_t>& reads,
                                          const std::vector<std::int64_t>& writes, std::int64_t slices) {
  if (compute.shapes.empty()) return {};
  return std::visit(
      [&]<class Operator>(const Operator& op) -> OperandSizes {
        if (std::string wrong = operand_forms::shapes_wrong<Operator>(compute); !wrong.empty())
          return {.wrong = std::move(wrong)};
        if (!operand_forms::has_phase(op, compute.phase)) return {.wrong = "no kernel of its phase"};
        const operand_forms::Found at{compute.phase, compute.shapes, slices, reads, writes};
        return operand_forms::by_law(op, at);
      },
      compute.op);
}

std::optional<std::int64_t> samples_of(const Compute& compute) {
  if (compute.shapes.empty() || compute.shapes[0].dims.empty()) return {};
  const std::vector<std::int64_t>& dims = compute.shapes[0].dims;
  if (is<ops::Attention, ops::PositionEmbedding, ops::Sample, ops::Conv2d>(compute.op)) return dims[0];
  const auto* scores = std::get_if<ops::Scores>(&compute.op);
  if (scores && scores->heads > 0) return dims[0] / scores->heads;
  return {};
}

}  // namespace foreshard
