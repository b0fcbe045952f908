#include "strategy/server/coded_push.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "strategy/program/chunk_frame.h"

namespace foreshard {

bool CodedPush::codes(const Plan& plan, const Buffer& gradient) {
  const bool cut = std::ranges::any_of(plan.axes, [](const Axis& axis) { return axis.size > 1; });
  return !gradient.holds.empty() && std::ranges::all_of(gradient.holds, [&](const Shard& shard) {
    return plan.tensors[shard.tensor.index()].shape.size() > 1 && (!cut || !shard.split_by.empty());
  });
}

CodedPush::CodedPush(const Coding& coding, const Buffer& gradient, Role& role, bool worker)
    : encode_(coding.encode), form_(coding.encode.form), dtype_(gradient.dtype) {
  elements_ = gradient.bytes.value / size_of(dtype_).value;
  if (coding.kept > 0)
    form_.kept = std::clamp<std::int64_t>(std::llround(std::ceil(coding.kept * static_cast<double>(elements_))), 1, elements_);
  encode_.form = form_;
  const std::size_t point = gradient.name.find('.');
  const std::string of = point == std::string::npos ? "." + gradient.name : gradient.name.substr(point);
  const auto add = [&](Buffer buffer) {
    role.buffers.push_back(std::move(buffer));
    return BufferId{static_cast<std::int32_t>(role.buffers.size()) - 1};
  };
  codes_ = add({.name = "codes" + of, .category = Category::Communication, .dtype = DType::U8, .bytes = bytes()});
  const DType type = dtype_ == DType::F64 ? DType::F64 : DType::F32;
  const auto state = [&](const char* name) {
    states_.push_back(add({.name = name + of,
                           .category = Category::Optimizer,
                           .dtype = type,
                           .bytes = size_of(type) * elements_,
                           .resident = true}));
  };
  if (worker && encode_.feedback) state("left out");
  if (worker && encode_.velocity) state("velocity");
}

Instruction CodedPush::compute(const char* name, Operation op, const OpWork& work) const {
  return {.name = name,
          .what = Compute{.op = std::move(op),
                          .phase = Phase::Other,
                          .shapes = {{{elements_}, dtype_ == DType::F64 ? DType::F64 : DType::F32}},
                          .flops = work.flops,
                          .traffic = work.traffic},
          .stream = kComputeStream};
}

Instruction CodedPush::encode(BufferId gradient) const {
  Instruction run = compute("encode", encode_, encode_.work(elements_, size_of(dtype_), bytes()));
  run.reads = {{.buffer = gradient}}, run.writes = {{.buffer = codes_}};
  for (const BufferId state : states_) run.reads.push_back({.buffer = state}), run.writes.push_back({.buffer = state});
  run.acquires = {{codes_}};
  return run;
}

Instruction CodedPush::decode(BufferId gradient) const {
  const ops::Decode op{.form = form_};
  Instruction run = compute("decode", op, op.work(elements_, size_of(dtype_), bytes()));
  run.reads = {{.buffer = codes_}}, run.writes = {{.buffer = gradient}};
  run.releases = {{codes_}};
  return run;
}

}  // namespace foreshard
