// Builds one segment: appends instructions in issue order and adds the `after` edges that data hazards between streams need.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

class SegmentBuilder {
 public:
  SegmentBuilder(std::string name, std::vector<Param> params);

  // Appends the instruction and returns its index in the segment. Adds `after` edges to earlier instructions of other streams that wrote
  // what it reads, or used what it writes.
  int emit(Instruction instruction);

  // "Last use" of a block: the last instruction so far that reads or writes it, which must exist (asserted). The next three functions also
  // add `after` edges to it, so that it follows the block's uses on all other streams.

  // The last use releases the block.
  void release(const Block& block);
  // The last use records the event when it ends.
  void record_after_last_use(const Block& block, const EventUse& event);
  // The last use waits for the event before it begins.
  void wait_before_last_use(const Block& block, const EventUse& event);

  // Treats the instruction with this index as a read of the block.
  void use_until(const Block& block, int index);
  // Indices of the block's last write so far and of the reads since then, those on other streams than `stream`.
  std::vector<int> uses_elsewhere(const Block& block, StreamId stream) const;

  Instruction& at(int index) { return segment_.instructions[static_cast<std::size_t>(index)]; }
  int size() const { return static_cast<int>(segment_.instructions.size()); }
  Segment take() { return std::move(segment_); }

 private:
  // What has happened to a block, that is, to one slot of a buffer.
  struct Touched {
    Slot slot = {};
    int other = -1;                 // index in touched_ of another slot of the buffer; -1: none
    int writer = -1;                // index of the last write; -1: none
    std::vector<int> readers = {};  // the last read of each stream since that write
    int last = -1;                  // last read or write
  };
  const Touched* find(BufferId buffer, const Slot& slot) const;  // null: not yet used
  Touched& touched(BufferId buffer, const Slot& slot);
  void depend(int index, int earlier);
  void note_read(const Use& use, int index);
  void note_write(const Use& use, int index);
  int join_last_use(const Block& block);

  Segment segment_;
  std::vector<Touched> touched_ = {};
  std::vector<int> newest_ = {};  // [buffer]: index in touched_ of its slot that was added last; -1: none
};

}  // namespace foreshard
