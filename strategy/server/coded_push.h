// A gradient that a worker sends to an asynchronous server as codes, that is, compressed (core/op/codec.h). Internal to strategy/.
//
//   worker   encode (gradient and what earlier codes left out -> codes, what these leave out) -> push codes
//   server                                                                                       push codes -> decode -> gradient
#pragma once

#include <vector>

#include "core/plan/plan.h"
#include "strategy/resolve/tables.h"

namespace foreshard {

class CodedPush {
 public:
  // Whether it is sent as codes: matrices of which each tensor-parallel rank has its own part. Vectors are small, and copies on several ranks
  // would differ once they are decoded.
  static bool codes(const Plan& plan, const Buffer& gradient);

  // Appends the buffers that it needs to the role: codes, and at the worker what they leave out.
  CodedPush(const Coding& coding, const Buffer& gradient, Role& role, bool worker);

  BufferId codes() const { return codes_; }
  Bytes bytes() const { return form_.payload(elements_); }
  Instruction encode(BufferId gradient) const;  // acquires the codes
  Instruction decode(BufferId gradient) const;  // releases them

 private:
  Instruction compute(const char* name, Operation op, const OpWork& work) const;

  ops::Encode encode_ = {};
  ops::CodeForm form_ = {};
  DType dtype_ = DType::F32;
  std::int64_t elements_ = 0;
  BufferId codes_ = {};
  std::vector<BufferId> states_ = {};  // what codes leave out, and the velocity
};

}  // namespace foreshard
