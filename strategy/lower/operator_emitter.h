// Makes the instructions of one operator: its compute, or its communication with other ranks. Internal to strategy/.
#pragma once

#include <map>
#include <string>

#include "strategy/lower/chunk_values.h"
#include "strategy/program/coded_sum.h"
#include "strategy/program/segment_builder.h"

namespace foreshard {

class OperatorEmitter {
 public:
  OperatorEmitter(const ChunkFrame& frame, const ChunkValues& values) : frame_(frame), values_(values) {}

  // Call at the start and the end of a segment. If collectives between operators have a stream of their own, these order that stream
  // against the computes of the actions before and after.
  void begin(SegmentBuilder& out);
  void end(SegmentBuilder& out) const;
  int begins() const { return begin_; }  // index of the instruction that begin made; -1: none

  // The compute instruction of one phase, without reads and writes.
  Instruction compute(const ChunkLayer& layer, const Operator& op, Phase phase) const;
  // Emits what `compute` made, after the caller has added reads and writes. Adds the scratch memory of 8-bit scaling factors.
  void emit(SegmentBuilder& out, const Operator& op, Instruction run) const;
  // Copies this rank's part of `from`, laid out as the result of the all-gather `gather`, to `to`, which it acquires. Returns the index of
  // the copy in the segment.
  int take_own_part(SegmentBuilder& out, const ChunkLayer& layer, const Operator& gather, const Block& from, const Block& to);
  // Emits the collective (all instructions of a coded sum, if the sum is sent as codes) or the exchange with the neighbours of a ring.
  // Returns the index of the last instruction. `acquire`: the instruction acquires `to`. `backward`: gradients are sent.
  int communicate(SegmentBuilder& out, const ChunkLayer& layer, const Operator& op, CollectiveKind kind, const Block& from,
                  const Block& to, bool acquire, bool backward = false);

  // The send or receive of a block between stages, or of this rank's part of it (CommunicationRow::cut_by), without reads and writes.
  Exchange transfer(const CommunicationRow& way, const Block& block, std::optional<Peer> to, std::optional<Peer> from,
                    const std::string& tag) const;
  // After such a receive: gathers the parts of the other ranks, by an instruction of that name. Emits nothing where the whole was received.
  void gather_transfer(SegmentBuilder& out, const CommunicationRow& way, const Block& block, const std::string& name) const;
  // The peers of transfers between stages, and the tag that pairs the send and the receive of a transfer.
  Peer next_stage() const;
  Peer previous_stage() const;
  std::string tag(bool forward, int to_stage) const;

 private:
  int coded_rows(SegmentBuilder& out, const ChunkLayer& layer, const Operator& op, const Coding& coding, const Block& from,
                 const Block& to);
  int coded_sum(SegmentBuilder& out, const ChunkLayer& layer, const Operator& op, const Coding& coding, const Block& sum);
  // The gather or the reduce-scatter of the rows of a sequence (sequence parallelism), in codes.
  int coded_parts(SegmentBuilder& out, const ChunkLayer& layer, const Operator& op, CollectiveKind kind, const Coding& coding,
                  const Block& from, const Block& to);
  void wait_for_output(Instruction& run, const Block& to) const;  // before `run` writes what the stage sends on
  CodedSum coded(const Operator& op, const Coding& coding) const;             // of one group of samples
  Block scratch(const char* name, DType dtype, Bytes of_group);               // for the codes of all groups of samples
  GroupId parts_of_transfer(const CommunicationRow& way, Bytes bytes) const;  // invalid: it is sent whole
  Instruction communication(const ChunkLayer& layer, const Operator& op, CollectiveKind kind, const Block& from,
                            const Block& to) const;
  // The row of the communication policy for collectives between operators over these axes.
  const CommunicationRow& way(const Kinds& over) const;
  bool is_between_operators(StreamId stream) const;
  bool operators_communicate() const;

  ChunkFrame frame_;
  const ChunkValues& values_;
  int begin_ = -1;  // as begins()
  struct Codes {    // scratch blocks of a coded sum; sums of one size share them
    Block codes = {}, received = {}, part = {}, part_codes = {}, gathered = {};
  };
  std::map<std::int64_t, Codes> codes_ = {};     // key: bytes of the sum; for rows minus the bytes of their codes
  std::map<std::int64_t, Codes> of_parts_ = {};  // the same for gathers and reduce-scatters
};

// FLOPs and memory traffic of one phase of an operator.
const OpWork& work_of(const Operator& op, Phase phase);

// If transfers of `way` do not overlap computes: the compute stream waits until send number `sent` is done. Else emits nothing.
void wait_for_send(SegmentBuilder& out, const CommunicationRow& way, int sent);

}  // namespace foreshard
