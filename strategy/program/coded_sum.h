// The instructions of a sum over ranks that is sent as codes, that is, compressed (core/op/codec.h), one function per instruction. Internal
// to strategy/.
//
//   exchanged   encode -> exchange (all-to-all) -> add_parts (fp32) -> encode_part -> gather (all-gather) -> decode
//   gathered    encode -> gather (all-gather) -> decode, which adds the arrays of all ranks
//
// A reduce-scatter, after which each rank needs only its own part of the sum, is an exchanged sum that ends with add_parts.
#pragma once

#include "strategy/program/lowering.h"

namespace foreshard {

// The sum of one array of `elements` elements of `dtype` over the ranks along axes of the kinds `over`.
class CodedSum {
 public:
  CodedSum(Lowering& lowering, const Coding& coding, const Kinds& over, const CommunicationRow& way, DType dtype,
           std::int64_t elements);

  // Sizes of the buffers.
  bool exchanged() const { return coding_.exchanged; }
  std::int64_t part_elements() const { return form_.part_elements(elements_); }             // elements of one rank's part
  DType state_type() const { return dtype_ == DType::F64 ? DType::F64 : DType::F32; }       // of residual, velocity and sums
  Bytes codes() const { return exchanged() ? part() * ranks_ : form_.payload(elements_); }  // of the encoded array of this rank
  Bytes part() const { return form_.part_bytes(part_elements()); }                          // exchanged: of one encoded part
  Bytes gathered() const { return exchanged() ? codes() : codes() * ranks_; }               // of what the all-gather writes

  // Each instruction acquires the block that it writes, unless its target is given as a Use.

  // Encodes the array. `states`: the residual and the velocity, those of them that the coding has; they are updated. `moment`: Adam's first
  // moment, if that is sent.
  Instruction encode(const Use& from, const std::optional<Use>& moment, const std::vector<Use>& states,
                     const Block& codes) const;
  // Sends part r of the codes to rank r.
  Instruction exchange(const Block& codes, const Block& received) const;
  // Decodes this rank's part as received from every rank, and sums these.
  Instruction add_parts(const Block& received, const Block& sum) const;
  // The same into an existing array of `dtype`: this rank's part, or the whole array that contains it. `accumulates`: adds to it.
  Instruction add_parts(const Block& received, const Use& sum, DType dtype, bool accumulates) const;
  // Encodes this rank's part of the sum. `states`: the residual of the sums, if the coding has feedback.
  Instruction encode_part(const Block& sum, const std::vector<Use>& states, const Block& codes) const;
  // The same of a part that an array of `dtype` holds.
  Instruction encode_part(const Block& part, DType dtype, const Block& codes) const;
  // All-gathers the codes: of the parts of the sum (exchanged), or of every rank's array.
  Instruction gather(const Block& codes, const Block& all) const;
  // Decodes the gathered codes into the sum of the whole array; if the codes are those of every rank's array, adds them.
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
