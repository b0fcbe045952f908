#include "strategy/state/coded_sums.h"

#include <algorithm>

namespace foreshard {

bool scatters(const StateRow& row, const GradientSum& sum) {
  return !row.optimizer.cut_by.empty() && sum.over == row.optimizer.cut_by;
}

CodedSums::CodedSums(const ChunkFrame& frame, const ChunkState& state, const Events& events)
    : frame_(frame), state_(state), events_(events), of_(state.units.size()) {
  for (std::size_t unit = 0; unit < of_.size(); ++unit) {
    const StateUnit& it = state.units[unit];
    if (!it.updated()) continue;
    for (const GradientSum& sum : frame.lowering.tables.state[static_cast<std::size_t>(it.row)].gradients.sums)
      if (sum.coding && frame.lowering.ranks(sum.over) > 1) of_[unit] = make(static_cast<int>(unit), sum, *sum.coding);
  }
  if (std::ranges::none_of(of_, [](const auto& coded) { return coded.has_value(); })) return;
  exchanged_ = frame.add_event("codes_exchanged", static_cast<int>(of_.size()));
  gathered_ = frame.add_event("codes_gathered", static_cast<int>(of_.size()));
}

Use CodedSums::state(const char* name, int unit, DType dtype, std::int64_t elements) {
  const Block at = block(name, unit, dtype, size_of(dtype) * elements);
  Buffer& buffer = frame_.role.buffers[at.buffer.index()];
  buffer.category = Category::Optimizer, buffer.resident = true;
  return whole(at);
}

Block CodedSums::block(const char* name, int unit, DType dtype, Bytes bytes) {
  frame_.role.buffers.push_back({.name = std::string(name) + "." + std::to_string(frame_.chunk) + "." + std::to_string(unit),
                                 .category = Category::Communication,
                                 .dtype = dtype,
                                 .bytes = bytes});
  return {.buffer = {static_cast<std::int32_t>(frame_.role.buffers.size()) - 1}};
}

CodedSums::Coded CodedSums::make(int unit, const GradientSum& sum, const Coding& coding) {
  const StateUnit& it = state_.units[static_cast<std::size_t>(unit)];
  const StateRow& row = frame_.lowering.tables.state[static_cast<std::size_t>(it.row)];
  Coded made{.sum = {frame_.lowering, coding, sum.over, frame_.lowering.communication(Purpose::GradientSum),
                     row.gradients.dtype, it.used},
             .when = sum.when,
             .scatters = scatters(row, sum)};
  const DType type = made.sum.state_type();
  if (coding.encode.feedback) made.left.push_back(state("left out", unit, type, it.used));
  if (coding.encode.velocity) made.left.push_back(state("velocity", unit, type, it.used));
  if (coding.of_moment) made.moment = Use{.buffer = it.momentum};
  made.codes = block("codes", unit, DType::U8, made.sum.codes());
  if (made.sum.exchanged()) made.received = block("codes of part", unit, DType::U8, made.sum.codes());
  if (made.sum.exchanged() && made.scatters) return made;
  made.gathered = block("codes of all", unit, DType::U8, made.sum.gathered());
  if (!made.sum.exchanged()) return made;
  if (coding.encode.feedback) made.left_of_part.push_back(state("left out of sum", unit, type, made.sum.part_elements()));
  made.part = block("sum of part", unit, type, size_of(type) * made.sum.part_elements());
  made.part_codes = block("codes of sum", unit, DType::U8, made.sum.part());
  return made;
}

void CodedSums::send(SegmentBuilder& out, int unit, const Use& from, const RunPart& part) {
  const Coded& it = *of_[static_cast<std::size_t>(unit)];
  out.emit(it.sum.encode(from, it.moment, it.left, it.codes));
  if (!it.sum.exchanged()) return gather(out, unit, it.codes);
  Instruction exchange = it.sum.exchange(it.codes, it.received);
  exchange.records.push_back({exchanged_, {unit}});
  out.emit(std::move(exchange));
  out.release(it.codes);
  if (open_ >= 0) add(out, open_, part);
  open_ = unit;
}

void CodedSums::end(SegmentBuilder& out, const RunPart& part) {
  if (open_ < 0 || of_[static_cast<std::size_t>(open_)]->ends_late()) return;
  add(out, open_, part);
  begin();
}

void CodedSums::add(SegmentBuilder& out, int unit, const RunPart& part) {
  const Coded& it = *of_[static_cast<std::size_t>(unit)];
  const StateUnit& of = state_.units[static_cast<std::size_t>(unit)];
  const StateRow::Gradients& row = frame_.lowering.tables.state[static_cast<std::size_t>(of.row)].gradients;
  const bool accumulates = !it.ends_late() && part.accumulates;
  Instruction add = it.scatters ? it.sum.add_parts(it.received, {.buffer = of.gradient}, row.dtype, accumulates)
                                : it.sum.add_parts(it.received, it.part);
  add.waits.push_back({exchanged_, {unit}});
  if (!it.ends_late() && !accumulates) add.waits.push_back({events_.ready, {unit}});
  if (it.scatters && part.last) add.records.push_back({events_.reduced, {unit}});
  out.emit(std::move(add));
  out.release(it.received);
  if (it.scatters) return;
  out.emit(it.sum.encode_part(it.part, it.left_of_part, it.part_codes));
  out.release(it.part);
  gather(out, unit, it.part_codes);
}

void CodedSums::gather(SegmentBuilder& out, int unit, const Block& codes) {
  const Coded& it = *of_[static_cast<std::size_t>(unit)];
  Instruction gather = it.sum.gather(codes, it.gathered);
  gather.records.push_back({gathered_, {unit}});
  out.emit(std::move(gather));
  out.release(codes);
}

// The whole gradient of a unit, without its padding.
Use CodedSums::gradient(int unit) const {
  const StateUnit& of = state_.units[static_cast<std::size_t>(unit)];
  const StateRow& row = frame_.lowering.tables.state[static_cast<std::size_t>(of.row)];
  if (of.used == of.elements) return {.buffer = of.gradient};
  return {.buffer = of.gradient, .length = size_of(row.gradients.dtype) * of.used};
}

void CodedSums::finish(SegmentBuilder& out) {
  int last = -1;
  begin();
  for (int unit = 0; unit < static_cast<int>(of_.size()); ++unit) {
    if (!codes(unit) || !of_[static_cast<std::size_t>(unit)]->ends_late()) continue;
    last = unit;
    if (of_[static_cast<std::size_t>(unit)]->when == GradientSum::When::AtEnd) send(out, unit, gradient(unit), {.last = true});
  }
  if (last >= 0 && of_[static_cast<std::size_t>(last)]->sum.exchanged()) add(out, last, {.last = true});
  for (int unit = 0; unit <= last; ++unit) {
    if (!codes(unit) || !of_[static_cast<std::size_t>(unit)]->gathered.buffer.valid()) continue;
    const Coded& it = *of_[static_cast<std::size_t>(unit)];
    Instruction decode = it.sum.decode(it.gathered, gradient(unit));
    decode.waits.push_back({gathered_, {unit}});
    decode.records.push_back({events_.reduced, {unit}});
    out.emit(std::move(decode));
    out.release(it.gathered);
  }
}

}  // namespace foreshard
