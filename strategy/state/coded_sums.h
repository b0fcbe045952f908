// Gradient sums over replicas that are sent as codes (compressed: strategy/program/coded_sum.h), unit by unit, overlapped with the
// backwards. Internal to strategy/.
//
//   compute   B(l2) | encode u0 | B(l1) | encode u1 | add, encode sum u0 | ...       the end of the run: | decode u0, u1, ...
//   stream                | exchange u0 |       | exchange u1 | gather u0 |
//
// A sum has two halves: encode and exchange; add, encode the sum and gather. The second half of a unit is issued after the first half
// of the next unit, so that no compute waits for an exchange that was issued just before it.
//
// Where some ranks add their gradients first (GradientSum::first), mostly those of a node, the sum begins with their reduce-scatter and
// ends with their gather, and the codes between are those of the rank's part:
//
//   compute   B(l2) |        B(l1) | encode u0 |       B(l0) | encode u1 | add, encode sum u0 | ...
//   stream          | scatter u0   |    | scatter u1 | exchange u0 |
//
// Where the optimizer states are sharded over the same ranks, the sum is a reduce-scatter. It ends when the parts are added: into the
// rank's slice of the whole gradients, or, where gradients are sharded too, into the rank's part, which accumulates over micro-batches. In
// the latter case each backward sums the gradients that it has made, and its segment ends when its last unit is added.
#pragma once

#include <vector>

#include "strategy/program/chunk_frame.h"
#include "strategy/program/coded_sum.h"
#include "strategy/program/segment_builder.h"
#include "strategy/state/model_state.h"

namespace foreshard {

struct RunPart {             // which micro-batch of the run a backward belongs to
  bool accumulates = false;  // not the first: its gradients are added to those of earlier micro-batches
  bool last = false;
};

// Whether `sum` is a reduce-scatter: it goes over the ranks that the optimizer states of its row are sharded over.
bool scatters(const StateRow& row, const GradientSum& sum);

class CodedSums {
 public:
  struct Events {
    EventId reduced = {};  // [unit] recorded when the unit's sum is complete
    EventId ready = {};    // [unit] recorded when the last update has read the unit's gradients
  };
  // Appends the buffers of residuals (what codes leave out), of velocities and of codes to the role.
  CodedSums(const ChunkFrame& frame, const ChunkState& state, const Events& events);

  bool codes(int unit) const { return of_[static_cast<std::size_t>(unit)].has_value(); }  // the unit's sum is sent as codes
  void begin() { open_.clear(); }                                                         // begins the segment of a backward
  // Issues the first step of a unit's sum, then the next one of each unit sent before it. `from` is the gradient of one backward, or
  // the gradient accumulated by all backwards of the run.
  void send(SegmentBuilder& out, int unit, const Use& from, const RunPart& part);
  // Ends the segment of a backward. Where parts accumulate over micro-batches, issues what is left of its last unit.
  void end(SegmentBuilder& out, const RunPart& part);
  void finish(SegmentBuilder& out);  // ends the run: issues everything that is left of all units, and decodes the sums

 private:
  struct Coded {  // a unit that is sent as codes
    CodedSum sum;
    GradientSum::When when = {};
    bool scatters = false;
    Kinds first = {};  // ranks that add their gradients first
    // Whether its last steps may be issued as late as the end of the run.
    bool ends_late() const { return when != GradientSum::When::EachMicrobatch; }
    int steps() const { return (first.empty() ? 0 : 1) + (sum.exchanged() ? 2 : 1); }  // before the codes are decoded
    // Residual (and velocity) of the unit's codes, and of those of the rank's sum.
    std::vector<Use> left = {}, left_of_part = {};
    std::optional<Use> moment = {};  // the optimizer's momentum, where the codes are of it
    Block codes = {}, received = {}, part = {}, part_codes = {}, gathered = {};
    Block added = {};  // with `first`: the rank's part of what those ranks have added, then of the sum of all
  };
  Coded make(int unit, const GradientSum& sum, const Coding& coding);
  Use state(const char* name, int unit, DType dtype, std::int64_t elements);
  Block block(const char* name, int unit, DType dtype, Bytes bytes);
  // Step `number` of a unit's sum, or those of all units that are open.
  void step(SegmentBuilder& out, int unit, int number, const Use& from, const RunPart& part);
  void step_all(SegmentBuilder& out, const RunPart& part);
  Instruction collective(const Coded& it, int unit, CollectiveKind kind) const;  // among the ranks that add first
  void encode(SegmentBuilder& out, int unit, const Use& from);
  void add(SegmentBuilder& out, int unit, const RunPart& part);
  void finish(SegmentBuilder& out, int unit);
  Use gradient(int unit) const;
  Use whole_gradient(int unit) const;  // with its padding
  void gather(SegmentBuilder& out, int unit, const Block& codes);

  ChunkFrame frame_;
  const ChunkState& state_;
  Events events_;
  EventId added_ = {}, exchanged_ = {}, gathered_ = {};
  std::vector<std::optional<Coded>> of_ = {};  // [unit]
  struct Open {
    int unit = 0, next = 0;  // the step that is issued next
  };
  std::vector<Open> open_ = {};  // units of which steps are still to be issued, the one sent last first
};

}  // namespace foreshard
