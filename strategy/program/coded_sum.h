// One sum over ranks whose numbers are sent as codes (core/op/codec.h), instruction by instruction. Internal to strategy/.
//
//   exchanged   encode -> all-to-all -> add the parts (fp32) -> encode the own part -> all-gather -> decode
//   gathered    encode -> all-gather -> add
//
// Where every rank needs its part alone (a reduce-scatter), an exchanged sum ends when the parts are added.
#pragma once

#include "strategy/program/lowering.h"

namespace foreshard {

// Of one array; the sizes are those of its buffers.
class CodedSum {
 public:
  CodedSum(Lowering& lowering, const Coding& coding, const Kinds& over, const CommunicationRow& way, DType dtype,
           std::int64_t elements);

  bool exchanged() const { return coding_.exchanged; }
  std::int64_t part_elements() const { return form_.part_elements(elements_); }
  DType state_type() const { return dtype_ == DType::F64 ? DType::F64 : DType::F32; }
  Bytes codes() const { return exchanged() ? part() * ranks_ : form_.payload(elements_); }  // of the whole array
  Bytes part() const { return form_.part_bytes(part_elements()); }                          // exchanged: of the own part
  Bytes gathered() const { return exchanged() ? codes() : codes() * ranks_; }

  // `states`: what was left out and the velocity, as far as the coding has them; `moment` only where it averages.
  Instruction encode(const Use& from, const std::optional<Use>& moment, const std::vector<Use>& states,
                     const Block& codes) const;
  Instruction exchange(const Block& codes, const Block& received) const;
  Instruction add_parts(const Block& received, const Block& sum) const;
  // Into the own part that is there, or an array that it is a part of.
  Instruction add_parts(const Block& received, const Use& sum, DType dtype, bool accumulates) const;
  Instruction encode_part(const Block& sum, const std::vector<Use>& states, const Block& codes) const;
  Instruction gather(const Block& codes, const Block& all) const;
  Instruction decode(const Block& all, const Use& to) const;

 private:
  Instruction compute(const char* name, Operation op, const OpWork& work, bool of_part) const;
  Instruction collective(const char* name, CollectiveKind kind, Bytes bytes) const;

  Coding coding_;
  ops::CodeForm form_;
  StreamId stream_;
  GroupId group_;
  DType dtype_;
  std::int64_t elements_, ranks_;
};

}  // namespace foreshard
