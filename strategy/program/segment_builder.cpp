#include "strategy/program/segment_builder.h"

#include <algorithm>

#include "core/base/error.h"

namespace foreshard {

SegmentBuilder::SegmentBuilder(std::string name, std::vector<Param> params) {
  segment_.name = std::move(name);
  segment_.params = std::move(params);
}

std::uint64_t SegmentBuilder::key(BufferId buffer, const Slot& slot) {
  const bool by_param = std::holds_alternative<ParamId>(slot.which);
  const std::int32_t number = by_param ? std::get<ParamId>(slot.which).value : std::get<std::int32_t>(slot.which);
  return (static_cast<std::uint64_t>(buffer.value) << 33) | (static_cast<std::uint64_t>(by_param) << 32) |
         static_cast<std::uint32_t>(number);
}

// Adds an `after` edge. Of several edges to one stream only the newest is kept: stream order implies the others.
void SegmentBuilder::depend(int index, int earlier) {
  Instruction& instruction = at(index);
  if (earlier < 0 || earlier == index || at(earlier).stream == instruction.stream) return;
  for (std::int32_t& known : instruction.after)
    if (at(known).stream == at(earlier).stream) {
      known = std::max(known, earlier);
      return;
    }
  instruction.after.push_back(earlier);
}

void SegmentBuilder::note_read(const Use& use, int index) {
  Touched& touched = touched_[key(use.buffer, use.slot)];
  depend(index, touched.writer);
  for (int& reader : touched.readers)
    if (at(reader).stream == at(index).stream) {
      reader = index;
      touched.last = index;
      return;
    }
  touched.readers.push_back(index);
  touched.last = index;
}

void SegmentBuilder::note_write(const Use& use, int index) {
  Touched& touched = touched_[key(use.buffer, use.slot)];
  depend(index, touched.writer);
  for (const int reader : touched.readers) depend(index, reader);
  touched.writer = index;
  touched.readers.clear();
  touched.last = index;
}

int SegmentBuilder::emit(Instruction instruction) {
  const int index = size();
  segment_.instructions.push_back(std::move(instruction));
  // Copies, since depend() changes the instruction during the loops.
  const std::vector<Use> reads = at(index).reads;
  const std::vector<Use> writes = at(index).writes;
  for (const Use& use : reads) note_read(use, index);
  for (const Use& use : writes) note_write(use, index);
  return index;
}

std::vector<int> SegmentBuilder::uses_elsewhere(const Block& block, StreamId stream) const {
  std::vector<int> uses;
  const auto found = touched_.find(key(block.buffer, block.slot));
  if (found == touched_.end()) return uses;
  const auto add = [&](int index) {
    if (index >= 0 && segment_.instructions[static_cast<std::size_t>(index)].stream != stream) uses.push_back(index);
  };
  add(found->second.writer);
  for (const int reader : found->second.readers) add(reader);
  return uses;
}

int SegmentBuilder::join_last_use(const Block& block) {
  Touched& touched = touched_[key(block.buffer, block.slot)];
  FS_ASSERT(touched.last >= 0);
  depend(touched.last, touched.writer);
  for (const int reader : touched.readers) depend(touched.last, reader);
  return touched.last;
}

void SegmentBuilder::release(const Block& block) {
  at(join_last_use(block)).releases.push_back(block);  // stays in touched_: the next writer has to wait for this instruction
}

void SegmentBuilder::record_after_last_use(const Block& block, const EventUse& event) {
  at(join_last_use(block)).records.push_back(event);
}

void SegmentBuilder::use_until(const Block& block, int index) {
  note_read({.buffer = block.buffer, .slot = block.slot}, index);
}

void SegmentBuilder::wait_before_last_use(const Block& block, const EventUse& event) {
  at(join_last_use(block)).waits.push_back(event);
}

}  // namespace foreshard
