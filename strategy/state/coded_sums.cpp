#include "strategy/state/coded_sums.h"

#include <algorithm>

namespace foreshard {

CodedSums::CodedSums(const ChunkFrame& frame, const ChunkState& state, EventId reduced)
    : frame_(frame), state_(state), reduced_(reduced), of_(state.units.size()) {
  for (std::size_t unit = 0; unit < of_.size(); ++unit) {
    const StateUnit& it = state.units[unit];
    if (it.borrowed) continue;
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
                     row.gradients.dtype, it.elements},
             .at_end = sum.when == GradientSum::When::AtEnd};
  const DType type = made.sum.state_type();
  if (coding.encode.feedback) made.left.push_back(state("left out", unit, type, it.elements));
  if (coding.encode.velocity) made.left.push_back(state("velocity", unit, type, it.elements));
  if (coding.of_moment) made.moment = Use{.buffer = it.momentum};
  made.codes = block("codes", unit, DType::U8, made.sum.codes());
  made.gathered = block("codes of all", unit, DType::U8, made.sum.gathered());
  if (!made.sum.exchanged()) return made;
  if (coding.encode.feedback) made.left_of_part.push_back(state("left out of sum", unit, type, made.sum.part_elements()));
  made.received = block("codes of part", unit, DType::U8, made.sum.codes());
  made.part = block("sum of part", unit, type, size_of(type) * made.sum.part_elements());
  made.part_codes = block("codes of sum", unit, DType::U8, made.sum.part());
  return made;
}

void CodedSums::send(SegmentBuilder& out, int unit) {
  const Coded& it = *of_[static_cast<std::size_t>(unit)];
  const StateUnit& of = state_.units[static_cast<std::size_t>(unit)];
  out.emit(it.sum.encode({.buffer = of.gradient}, it.moment, it.left, it.codes));
  if (!it.sum.exchanged()) return gather(out, unit, it.codes);
  Instruction exchange = it.sum.exchange(it.codes, it.received);
  exchange.records.push_back({exchanged_, {unit}});
  out.emit(std::move(exchange));
  out.release(it.codes);
  if (open_ >= 0) send_sum(out, open_);
  open_ = unit;
}

void CodedSums::send_sum(SegmentBuilder& out, int unit) {
  const Coded& it = *of_[static_cast<std::size_t>(unit)];
  Instruction add = it.sum.add_parts(it.received, it.part);
  add.waits.push_back({exchanged_, {unit}});
  out.emit(std::move(add));
  out.release(it.received);
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

void CodedSums::finish(SegmentBuilder& out) {
  int last = -1;
  begin();
  for (int unit = 0; unit < static_cast<int>(of_.size()); ++unit) {
    if (!codes(unit)) continue;
    last = unit;
    if (of_[static_cast<std::size_t>(unit)]->at_end) send(out, unit);
  }
  if (last >= 0 && of_[static_cast<std::size_t>(last)]->sum.exchanged()) send_sum(out, last);
  for (int unit = 0; unit <= last; ++unit) {
    if (!codes(unit)) continue;
    const Coded& it = *of_[static_cast<std::size_t>(unit)];
    Instruction decode = it.sum.decode(it.gathered, {.buffer = state_.units[static_cast<std::size_t>(unit)].gradient});
    decode.waits.push_back({gathered_, {unit}});
    decode.records.push_back({reduced_, {unit}});
    out.emit(std::move(decode));
    out.release(it.gathered);
  }
}

}  // namespace foreshard
