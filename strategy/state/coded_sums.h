// Sums of gradients that are sent as codes, unit by unit, beside the backwards. Internal to strategy/.
//
//   compute   B(l2) | encode u0 | B(l1) | encode u1 | add, encode sum u0 | ...       the end of the run: | decode u0, u1, ...
//   stream                | exchange u0 |       | exchange u1 | gather u0 |
//
// The second half of a unit is issued with the first half of the next one, so that no compute waits for what was sent just now.
//
// Where the optimizer is cut over the same ranks, the sum is a reduce-scatter: it ends with the parts added, into the own slice of the
// gradients, or into the own part, which accumulates. Then each backward sums what it has made, and ends when its last unit is added.
#pragma once

#include <vector>

#include "strategy/program/chunk_frame.h"
#include "strategy/program/coded_sum.h"
#include "strategy/program/segment_builder.h"
#include "strategy/state/model_state.h"

namespace foreshard {

struct RunPart {             // which micro-batch of the run
  bool accumulates = false;  // not the first one
  bool last = false;
};

// Whether a sum of the row is a reduce-scatter: over what its optimizer states are cut by.
bool scatters(const StateRow& row, const GradientSum& sum);

class CodedSums {
 public:
  struct Events {
    EventId reduced = {};  // [unit] the sum is there
    EventId ready = {};    // [unit] the last update has read it
  };
  // Appends what codes leave out, and the blocks of codes, to the role.
  CodedSums(const ChunkFrame& frame, const ChunkState& state, const Events& events);

  bool codes(int unit) const { return of_[static_cast<std::size_t>(unit)].has_value(); }
  void begin() { open_ = -1; }  // a segment of a backward
  // The first half, of the gradient of a backward or of all so far.
  void send(SegmentBuilder& out, int unit, const Use& from, const RunPart& part);
  void end(SegmentBuilder& out, const RunPart& part);  // of such a segment: own parts that accumulate are added
  void finish(SegmentBuilder& out);                    // the end of the run: what is left of all units

 private:
  struct Coded {
    CodedSum sum;
    GradientSum::When when = {};
    bool scatters = false;
    bool ends_late() const { return when != GradientSum::When::EachMicrobatch; }
    std::vector<Use> left = {}, left_of_part = {};
    std::optional<Use> moment = {};
    Block codes = {}, received = {}, part = {}, part_codes = {}, gathered = {};
  };
  Coded make(int unit, const GradientSum& sum, const Coding& coding);
  Use state(const char* name, int unit, DType dtype, std::int64_t elements);
  Block block(const char* name, int unit, DType dtype, Bytes bytes);
  void add(SegmentBuilder& out, int unit, const RunPart& part);
  Use gradient(int unit) const;
  void gather(SegmentBuilder& out, int unit, const Block& codes);

  ChunkFrame frame_;
  const ChunkState& state_;
  Events events_;
  EventId exchanged_ = {}, gathered_ = {};
  std::vector<std::optional<Coded>> of_ = {};  // [unit]
  int open_ = -1;                              // the unit whose second half is to come
};

}  // namespace foreshard
