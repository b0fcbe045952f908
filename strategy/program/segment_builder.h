// Builds one segment: appends instructions in issue order and adds the `after` edges that data hazards between streams need.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/plan/plan.h"

namespace foreshard {

class SegmentBuilder {
 public:
  SegmentBuilder(std::string name, std::vector<Param> params);

  // Appends; returns its index. Reads, writes and acquires are compared with what earlier instructions of other streams did.
  int emit(Instruction instruction);
  // The block dies with the last instruction so far that touches it; that one then waits for the block's uses on other streams.
  void release(const Block& block);
  // (event, slot) is recorded when the last instruction so far that touches the block ends.
  void record_after_last_use(const Block& block, const EventUse& event);
  void wait_before_last_use(const Block& block, const EventUse& event);
  // The instruction counts among those that read the block.
  void use_until(const Block& block, int index);

  // The last write so far and the reads after it that are on other streams.
  std::vector<int> uses_elsewhere(const Block& block, StreamId stream) const;

  Instruction& at(int index) { return segment_.instructions[static_cast<std::size_t>(index)]; }
  int size() const { return static_cast<int>(segment_.instructions.size()); }
  Segment take() { return std::move(segment_); }

 private:
  struct Touched {
    int writer = -1;                // last write
    std::vector<int> readers = {};  // reads since, the last of each stream
    int last = -1;                  // last use of any kind
  };
  static std::uint64_t key(BufferId buffer, const Slot& slot);
  void depend(int index, int earlier);
  void note_read(const Use& use, int index);
  void note_write(const Use& use, int index);
  int join_last_use(const Block& block);

  Segment segment_;
  std::unordered_map<std::uint64_t, Touched> touched_;
};

}  // namespace foreshard
