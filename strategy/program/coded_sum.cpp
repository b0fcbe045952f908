#include "strategy/program/coded_sum.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "strategy/program/chunk_frame.h"

namespace foreshard {

CodedSum::CodedSum(Lowering& lowering, const Coding& coding, const Kinds& over, const CommunicationRow& way, DType dtype,
                   std::int64_t elements)
    : coding_(coding),
      form_(coding.encode.form),
      stream_(way.stream),
      group_(lowering.group(over, way.stream)),
      dtype_(dtype),
      elements_(elements),
      ranks_(lowering.ranks(over)) {
  if (exchanged()) form_.parts = ranks_;
  if (coding_.kept > 0)
    form_.kept = std::clamp<std::int64_t>(std::llround(std::ceil(coding_.kept * static_cast<double>(elements))), 1, elements);
}

Instruction CodedSum::compute(const char* name, Operation op, const OpWork& work, bool of_part) const {
  return {.name = name,
          .what = Compute{.op = std::move(op),
                          .phase = Phase::Other,
                          .shapes = {{{elements_}, state_type()}},
                          .flops = work.flops,
                          .traffic = work.traffic,
                          .slice = of_part ? group_ : GroupId{}},
          .stream = kComputeStream};
}

Instruction CodedSum::collective(const char* name, CollectiveKind kind, Bytes bytes) const {
  return {
      .name = name, .what = Collective{.kind = kind, .group = group_, .bytes = bytes, .dtype = DType::U8}, .stream = stream_};
}

Instruction CodedSum::encode(const Use& from, const std::optional<Use>& moment, const std::vector<Use>& states,
                             const Block& codes) const {
  ops::Encode op = coding_.encode;
  op.form = form_;
  if (moment) op.averaging = ranks_;
  Instruction run = compute("encode", op, op.work(elements_, size_of(dtype_), this->codes()), false);
  run.reads = {from};
  if (moment) run.reads.push_back(*moment);
  run.writes = {whole(codes)};
  run.reads.insert(run.reads.end(), states.begin(), states.end());
  run.writes.insert(run.writes.end(), states.begin(), states.end());
  run.acquires = {codes};
  return run;
}

Instruction CodedSum::exchange(const Block& codes, const Block& received) const {
  Instruction run = collective("exchange codes", CollectiveKind::AllToAll, this->codes());
  run.reads = {whole(codes)}, run.writes = {whole(received)}, run.acquires = {received};
  return run;
}

Instruction CodedSum::add_parts(const Block& received, const Block& sum) const {
  Instruction run = add_parts(received, whole(sum), state_type(), false);
  run.acquires = {sum};
  return run;
}

Instruction CodedSum::add_parts(const Block& received, const Use& sum, DType dtype, bool accumulates) const {
  const ops::Decode op{.form = form_, .adds = true};
  OpWork work = op.work(part_elements(), size_of(dtype), codes());
  if (accumulates) work.traffic += size_of(dtype) * part_elements();
  Instruction run = compute("add parts", op, work, true);
  std::get<Compute>(run.what).accumulate = accumulates;
  run.reads = {whole(received)}, run.writes = {sum};
  return run;
}

Instruction CodedSum::encode_part(const Block& sum, const std::vector<Use>& states, const Block& codes) const {
  const ops::Encode op{.form = form_, .feedback = coding_.encode.feedback};
  Instruction run = compute("encode sum", op, op.work(part_elements(), size_of(state_type()), part()), true);
  run.reads = {whole(sum)}, run.writes = {whole(codes)}, run.acquires = {codes};
  run.reads.insert(run.reads.end(), states.begin(), states.end());
  run.writes.insert(run.writes.end(), states.begin(), states.end());
  return run;
}

Instruction CodedSum::encode_part(const Block& part, DType dtype, const Block& codes) const {
  const ops::Encode op{.form = form_};
  Instruction run = compute("encode part", op, op.work(part_elements(), size_of(dtype), this->part()), true);
  run.reads = {whole(part)}, run.writes = {whole(codes)}, run.acquires = {codes};
  return run;
}

Instruction CodedSum::gather(const Block& codes, const Block& all) const {
  Instruction run = collective("gather codes", CollectiveKind::AllGather, gathered());
  run.reads = {whole(codes)}, run.writes = {whole(all)}, run.acquires = {all};
  return run;
}

Instruction CodedSum::decode(const Block& all, const Use& to) const {
  ops::Decode op{.form = form_, .adds = !exchanged()};
  if (op.adds) op.form.parts = ranks_;
  Instruction run = compute("decode", op, op.work(elements_, size_of(dtype_), gathered()), false);
  run.reads = {whole(all)}, run.writes = {to};
  return run;
}

}  // namespace foreshard
