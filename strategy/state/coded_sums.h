// Sums of gradients that are sent as codes, unit by unit, beside the backwards. Internal to strategy/.
//
//   compute   B(l2) | encode u0 | B(l1) | encode u1 | add, encode sum u0 | ...       the end of the run: | decode u0, u1, ...
//   stream                | exchange u0 |       | exchange u1 | gather u0 |
//
// The second half of a unit is issued with the first half of the next one, so that no compute waits for what was sent just now.
#pragma once

#include <vector>

#include "strategy/program/chunk_frame.h"
#include "strategy/program/coded_sum.h"
#include "strategy/program/segment_builder.h"
#include "strategy/state/model_state.h"

namespace foreshard {

class CodedSums {
 public:
  // Appends what codes leave out, and the blocks of codes, to the role. `reduced`: the sum of a unit is there.
  CodedSums(const ChunkFrame& frame, const ChunkState& state, EventId reduced);

  bool codes(int unit) const { return of_[static_cast<std::size_t>(unit)].has_value(); }
  void begin() { open_ = -1; }               // a segment of a backward
  void send(SegmentBuilder& out, int unit);  // the first half
  void finish(SegmentBuilder& out);          // the end of the run: what is left of all units

 private:
  struct Coded {
    CodedSum sum;
    bool at_end = false;  // its first half too
    std::vector<Use> left = {}, left_of_part = {};
    std::optional<Use> moment = {};
    Block codes = {}, received = {}, part = {}, part_codes = {}, gathered = {};
  };
  Coded make(int unit, const GradientSum& sum, const Coding& coding);
  Use state(const char* name, int unit, DType dtype, std::int64_t elements);
  Block block(const char* name, int unit, DType dtype, Bytes bytes);
  void send_sum(SegmentBuilder& out, int unit);
  void gather(SegmentBuilder& out, int unit, const Block& codes);

  ChunkFrame frame_;
  const ChunkState& state_;
  EventId reduced_, exchanged_ = {}, gathered_ = {};
  std::vector<std::optional<Coded>> of_ = {};  // [unit]
  int open_ = -1;                              // the unit whose second half is to come
};

}  // namespace foreshard
