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
  const auto adds_first = [](const auto& coded) { return coded && !coded->first.empty(); };
  if (std::ranges::any_of(of_, adds_first)) added_ = frame.add_event("added_before_codes", static_cast<int>(of_.size()));
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
  const std::int64_t elements = sum.first.empty() ? it.used : it.elements / frame_.lowering.ranks(sum.first);
  Coded made{.sum = {frame_.lowering, coding, sum.codes_over(), frame_.lowering.communication(Purpose::GradientSum),
                     row.gradients.dtype, elements},
             .when = sum.when,
             .scatters = scatters(row, sum),
             .first = sum.first};
  const DType type = made.sum.state_type();
  if (!made.first.empty())
    made.added = block("added before codes", unit, row.gradients.dtype, size_of(row.gradients.dtype) * elements);
  if (coding.encode.feedback) made.left.push_back(state("left out", unit, type, elements));
  if (coding.encode.velocity) made.left.push_back(state("velocity", unit, type, elements));
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
  step(out, unit, 0, from, part);
  step_all(out, part);
  open_.insert(open_.begin(), {unit, 1});
}

void CodedSums::step_all(SegmentBuilder& out, const RunPart& part) {
  for (Open& open : open_) step(out, open.unit, open.next++, {}, part);
  std::erase_if(open_, [&](const Open& open) { return open.next >= of_[static_cast<std::size_t>(open.unit)]->steps(); });
}

void CodedSums::step(SegmentBuilder& out, int unit, int number, const Use& from, const RunPart& part) {
  const Coded& it = *of_[static_cast<std::size_t>(unit)];
  if (number >= it.steps()) return;
  const bool first = !it.first.empty();
  if (first && number == 0) {
    Instruction run = collective(it, unit, CollectiveKind::ReduceScatter);
    run.reads = {from}, run.writes = {whole(it.added)}, run.acquires = {it.added};
    run.records.push_back({added_, {unit}});
    out.emit(std::move(run));
  } else if (number == (first ? 1 : 0)) {
    encode(out, unit, from);
  } else {
    add(out, unit, part);
  }
}

Instruction CodedSums::collective(const Coded& it, int unit, CollectiveKind kind) const {
  const StateUnit& of = state_.units[static_cast<std::size_t>(unit)];
  const DType type = frame_.lowering.tables.state[static_cast<std::size_t>(of.row)].gradients.dtype;
  const CommunicationRow& way = frame_.lowering.communication(Purpose::GradientSum);
  return {.name = kind == CollectiveKind::AllGather ? "gather gradients" : "add gradients before codes",
          .what = Collective{.kind = kind,
                             .group = frame_.lowering.group(it.first, way.stream),
                             .bytes = size_of(type) * of.elements,
                             .dtype = type},
          .stream = way.stream};
}

void CodedSums::encode(SegmentBuilder& out, int unit, const Use& from) {
  const Coded& it = *of_[static_cast<std::size_t>(unit)];
  Instruction encode = it.sum.encode(it.first.empty() ? from : whole(it.added), it.moment, it.left, it.codes);
  if (!it.first.empty()) encode.waits.push_back({added_, {unit}});
  out.emit(std::move(encode));
  if (!it.first.empty()) out.release(it.added);
  if (!it.sum.exchanged()) return gather(out, unit, it.codes);
  Instruction exchange = it.sum.exchange(it.codes, it.received);
  exchange.records.push_back({exchanged_, {unit}});
  out.emit(std::move(exchange));
  out.release(it.codes);
}

void CodedSums::end(SegmentBuilder& out, const RunPart& part) {
  if (open_.empty() || of_[static_cast<std::size_t>(open_.front().unit)]->ends_late()) return;
  while (!open_.empty()) step_all(out, part);
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

Use CodedSums::whole_gradient(int unit) const { return {.buffer = state_.units[static_cast<std::size_t>(unit)].gradient}; }

// The whole gradient of a unit, without its padding.
Use CodedSums::gradient(int unit) const {
  const StateUnit& of = state_.units[static_cast<std::size_t>(unit)];
  const StateRow& row = frame_.lowering.tables.state[static_cast<std::size_t>(of.row)];
  if (of.used == of.elements) return {.buffer = of.gradient};
  return {.buffer = of.gradient, .length = size_of(row.gradients.dtype) * of.used};
}

void CodedSums::finish(SegmentBuilder& out) {
  begin();
  std::vector<int> late;
  for (int unit = 0; unit < static_cast<int>(of_.size()); ++unit)
    if (codes(unit) && of_[static_cast<std::size_t>(unit)]->ends_late()) late.push_back(unit);
  // What the last backward has left open, or, at the end of a run, everything.
  for (std::size_t i = 0; i < late.size(); ++i) {
    const Coded& it = *of_[static_cast<std::size_t>(late[i])];
    const int behind = static_cast<int>(late.size() - i);  // sends since then, its own included
    if (it.when == GradientSum::When::AtEnd)
      send(out, late[i], it.first.empty() ? gradient(late[i]) : whole_gradient(late[i]), {.last = true});
    else if (behind < it.steps())
      open_.insert(open_.begin(), {late[i], behind});
  }
  while (!open_.empty()) step_all(out, {.last = true});
  for (const int unit : late)
    if (of_[static_cast<std::size_t>(unit)]->gathered.buffer.valid()) finish(out, unit);
}

// Decodes the sum, and gathers its parts where ranks have added theirs first.
void CodedSums::finish(SegmentBuilder& out, int unit) {
  const Coded& it = *of_[static_cast<std::size_t>(unit)];
  const bool first = !it.first.empty();
  Instruction decode = it.sum.decode(it.gathered, first ? whole(it.added) : gradient(unit));
  decode.waits.push_back({gathered_, {unit}});
  if (first) decode.acquires = {it.added};
  if (!first) decode.records.push_back({events_.reduced, {unit}});
  out.emit(std::move(decode));
  out.release(it.gathered);
  if (!first) return;
  const StateUnit& of = state_.units[static_cast<std::size_t>(unit)];
  const DType type = frame_.lowering.tables.state[static_cast<std::size_t>(of.row)].gradients.dtype;
  Instruction gather = collective(it, unit, CollectiveKind::AllGather);
  gather.reads = {whole(it.added)}, gather.writes = {whole_gradient(unit)};
  const std::int64_t padding = of.elements - of.used;
  if (padding == 0) gather.records.push_back({events_.reduced, {unit}});
  out.emit(std::move(gather));
  out.release(it.added);
  if (padding == 0) return;
  // What the codes have made of the padding does not come into the next sum.
  const Bytes used = size_of(type) * of.used, rest = size_of(type) * padding;
  Instruction clear{
      .name = "clear padding",
      .what = Compute{.op = ops::Zero{}, .phase = Phase::Other, .shapes = {{{padding}, type}}, .traffic = rest},
      .stream = kComputeStream};
  clear.writes = {{.buffer = of.gradient, .from = used, .length = rest}};
  clear.records = {{events_.reduced, {unit}}};
  out.emit(std::move(clear));
}

}  // namespace foreshard
