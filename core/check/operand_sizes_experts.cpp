// Sizes of the operands of mixtures of experts (core/op/experts.h).
#include "core/check/operand_forms.h"

namespace foreshard::operand_forms {

OperandSizes sizes(const ops::Route& op, const Found& at) {
  const Sizes& d = at.dims(0);
  const std::int64_t logits = times(d[0], d[1]), choices = times(d[0], d[2]), experts = d[1];
  if (op.chosen != d[2]) return {.wrong = std::to_string(op.chosen) + " experts of a token, its shape " + std::to_string(d[2])};
  if (!at.forward()) return {.reads = {choices, logits, choices, experts}, .writes = {logits}};
  OperandSizes all{.reads = {logits}, .writes = {choices, choices, kAnySize}};  // loads: of a part, a part of them
  for (std::size_t more = 1; more < at.reads.size(); ++more) all.reads.push_back(experts);
  if (at.reads.size() > 2) all.writes.push_back(experts);
  return all;
}
OperandSizes sizes(const ops::Dispatch& op, const Found& at) {
  const Sizes &of = at.dims(0), &to = at.dims(1);
  if (to[0] < 1 || of[3] % to[0] != 0) return {.wrong = "experts that its ranks do not divide"};
  const std::int64_t rows = times(op.sources > 1 ? op.sources : to[0], to[1], of[1]), x = times(op.sources, of[0], of[1]);
  const std::int64_t choices = times(op.sources, of[0], of[2]);
  if (at.forward()) {
    OperandSizes all{.reads = {x}, .writes = {rows, choices, kAnySize}};
    if (op.scaled) all.reads.push_back(choices);
    all.reads.push_back(choices);
    return all;
  }
  if (op.scaled) return {.reads = {rows, x, choices, choices}, .writes = {x, choices}};
  return {.reads = {rows, choices}, .writes = {x}};
}
OperandSizes sizes(const ops::Combine& op, const Found& at) {
  const Sizes &of = at.dims(0), &to = at.dims(1);
  const std::int64_t rows = times(to[0], to[1], of[1]), y = times(of[0], of[1]), choices = times(of[0], of[2]);
  if (at.forward()) return {.reads = op.plain ? Sizes{rows, choices} : Sizes{rows, choices, choices}, .writes = {y}};
  if (op.plain) return {.reads = {y, choices}, .writes = {rows}};
  return {.reads = {y, rows, choices, choices}, .writes = {rows, choices}};
}
OperandSizes sizes(const ops::SendOnce&, const Found& at) {
  const Sizes &of = at.dims(0), &to = at.dims(1);
  const std::int64_t rows = times(to[0], to[1], of[1]), kept = times(to[0], to[1], of[2]), places = times(of[0], to[0]);
  const std::int64_t x = times(of[0], of[1]), choices = times(of[0], of[2]);
  if (at.forward()) return {.reads = {x, choices, choices}, .writes = {rows, kept, kept, places}};
  return {.reads = {rows, kept, places}, .writes = {x, choices}};
}
OperandSizes sizes(const ops::GroupedMatMul& op, const Found& at) {
  const Sizes &d = at.dims(0), &from = at.dims(1);
  if (op.parts < 1 || op.parts > 16 || d[2] % op.parts != 0) return {.wrong = "columns that its parts do not divide"};
  const auto parts = static_cast<std::size_t>(op.parts);
  const std::int64_t rows = times(from[0], from[1]), columns = d[2] / op.parts, weight = times(d[0], columns, d[3]);
  const std::int64_t x = times(rows, d[3]), y = times(rows, d[2]), counts = times(from[0], d[0]), bias = times(d[0], columns);
  OperandSizes all;
  Sizes* with_weights = &all.reads;
  if (at.forward()) {
    all = {.reads = {x, counts}, .writes = {y}};
  } else if (at.phase == Phase::WeightGrad) {
    all.reads = {y, x, counts};
    with_weights = &all.writes;
  } else {
    all = {.reads = {y, x, counts}, .writes = {x}};
  }
  with_weights->insert(with_weights->end(), parts, weight);
  const Sizes& found = with_weights == &all.reads ? at.reads : at.writes;
  if (found.size() > with_weights->size()) with_weights->insert(with_weights->end(), parts, bias);
  return all;
}
OperandSizes sizes(const ops::BalanceExperts&, const Found& at) {
  return {.reads = {at.all(), at.all()}, .writes = {at.all(), at.all()}};
}

}  // namespace foreshard::operand_forms
