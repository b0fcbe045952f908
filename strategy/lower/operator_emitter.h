// Instructions for one operator: what it computes, or what it says to other ranks. Internal to strategy/.
#pragma once

#include <map>
#include <string>

#include "strategy/lower/chunk_values.h"
#include "strategy/program/segment_builder.h"

namespace foreshard {

class OperatorEmitter {
 public:
  OperatorEmitter(const ChunkFrame& frame, const ChunkValues& values) : frame_(frame), values_(values) {}

  // Around the instructions of a segment, where collectives between operators have a stream of their own.
  void begin(SegmentBuilder& out);
  void end(SegmentBuilder& out) const;
  int begins() const { return begin_; }  // index of the instruction that begin made; -1: none

  Instruction compute(const ChunkLayer& layer, const Operator& op, Phase phase) const;
  // Emits what `compute` made, once its operands are there, with the memory that it needs for itself.
  void emit(SegmentBuilder& out, const Operator& op, Instruction run) const;
  // Emits the collective, or exchanges; its index, the last one's. `acquire`: it makes `to`.
  // Of what an all-gather has brought: `to`, which begins here, gets the part that came from this rank.
  int take_own_part(SegmentBuilder& out, const ChunkLayer& layer, const Operator& gather, const Block& from, const Block& to);
  int communicate(SegmentBuilder& out, const ChunkLayer& layer, const Operator& op, CollectiveKind kind, const Block& from,
                  const Block& to, bool acquire);

  // Transfers between stages.
  Peer next_stage() const;
  Peer previous_stage() const;
  std::string tag(bool forward, int to_stage) const;

 private:
  int coded_sum(SegmentBuilder& out, const ChunkLayer& layer, const Operator& op, const Coding& coding, const Block& sum);
  Instruction communication(const ChunkLayer& layer, const Operator& op, CollectiveKind kind, const Block& from,
                            const Block& to) const;
  StreamId tensor_stream() const;
  bool operators_communicate() const;

  ChunkFrame frame_;
  const ChunkValues& values_;
  int begin_ = -1;
  struct Codes {  // the blocks of codes of sums of one size
    Block codes = {}, received = {}, part = {}, part_codes = {}, gathered = {};
  };
  std::map<std::int64_t, Codes> codes_ = {};  // by bytes
};

// FLOPs and traffic of one phase.
const OpWork& work_of(const Operator& op, Phase phase);

// Transfers that do not overlap: the compute stream waits until the other side has the data.
void wait_for_send(SegmentBuilder& out, const CommunicationRow& way, int sent);

}  // namespace foreshard
