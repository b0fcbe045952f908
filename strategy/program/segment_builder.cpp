#include "strategy/program/segment_builder.h"

#include <algorithm>

#include "core/base/error.h"

namespace foreshard {

SegmentBuilder::SegmentBuilder(std::string name, std::vector<Param> params) {
  segment_.name = std::move(name);
  segment_.params = std::move(params);
}

const SegmentBuilder::Touched* SegmentBuilder::find(BufferId buffer, const Slot& slot) const {
  if (buffer.index() >= newest_.size()) return nullptr;
  for (int t = newest_[buffer.index()]; t >= 0; t = touched_[static_cast<std::size_t>(t)].other)
    if (const Touched& known = touched_[static_cast<std::size_t>(t)]; known.slot == slot) return &known;
  return nullptr;
}

SegmentBuilder::Touched& SegmentBuilder::touched(BufferId buffer, const Slot& slot) {
  if (const Touched* known = find(buffer, slot)) return touched_[static_cast<std::size_t>(known - touched_.data())];
  if (buffer.index() >= newest_.size()) newest_.resize(buffer.index() + 1, -1);
  int& newest = newest_[buffer.index()];
  touched_.push_back({.slot = slot, .other = newest});
  newest = static_cast<int>(touched_.size()) - 1;
  return touched_.back();
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
  Touched& block = touched(use.buffer, use.slot);
  depend(index, block.writer);
  block.last = index;
  for (int& reader : block.readers)
    if (at(reader).stream == at(index).stream) {
      reader = index;
      return;
    }
  block.readers.push_back(index);
}

void SegmentBuilder::note_write(const Use& use, int index) {
  Touched& block = touched(use.buffer, use.slot);
  depend(index, block.writer);
  for (const int reader : block.readers) depend(index, reader);
  block.writer = index;
  block.readers.clear();
  block.last = index;
}

int SegmentBuilder::emit(Instruction instruction) {
  const int index = size();
  segment_.instructions.push_back(std::move(instruction));
  for (const Use& use : at(index).reads) note_read(use, index);
  for (const Use& use : at(index).writes) note_write(use, index);
  return index;
}

std::vector<int> SegmentBuilder::uses_elsewhere(const Block& block, StreamId stream) const {
  std::vector<int> uses;
  const Touched* found = find(block.buffer, block.slot);
  if (found == nullptr) return uses;
  const auto add = [&](int index) {
    if (index >= 0 && segment_.instructions[static_cast<std::size_t>(index)].stream != stream) uses.push_back(index);
  };
  add(found->writer);
  for (const int reader : found->readers) add(reader);
  return uses;
}

int SegmentBuilder::join_last_use(const Block& block) {
  const Touched* known = find(block.buffer, block.slot);
  FS_ASSERT(known != nullptr);
  depend(known->last, known->writer);
  for (const int reader : known->readers) depend(known->last, reader);
  return known->last;
}

void SegmentBuilder::release(const Block& block) {
  at(join_last_use(block))
      .releases.push_back(block);  // the block stays known: the next writer has to wait for this instruction
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
