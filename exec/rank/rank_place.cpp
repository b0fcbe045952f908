#include "exec/rank/rank_place.h"

#include <algorithm>

#include "core/base/count_text.h"
#include "core/base/error.h"
#include "exec/base/philox.h"

namespace foreshard {

RankPlace place_of(const Plan& plan, const Ranks& ranks, RankId rank) {
  RankPlace place{.rank = rank};
  const Role& role = plan.roles[ranks.role(rank).index()];
  for (const AxisId id : role.axes) {
    const Axis& axis = plan.axes[id.index()];
    if (axis.expert == ExpertKind::ExpertTensor) place.expert_part = place.expert_part * axis.size + ranks.coordinate(rank, id);
    if (is_of_experts(axis)) place.expert_rank = place.expert_rank * axis.size + ranks.coordinate(rank, id);
    if (axis.dense == DenseKind::Tensor) {
      place.tp *= axis.size;
      place.tp_rank = place.tp_rank * axis.size + ranks.coordinate(rank, id);
    } else if (axis.dense == DenseKind::Context) {
      place.cp *= axis.size;
      place.cp_rank = place.cp_rank * axis.size + ranks.coordinate(rank, id);
    } else {
      place.replicas *= axis.size;
      place.replica = place.replica * axis.size + ranks.coordinate(rank, id);
    }
  }
  const std::int64_t parts = std::int64_t{place.replicas} * plan.microbatches;
  if (parts <= 0 || plan.samples < parts || plan.samples % parts != 0)
    throw Error("plan", "samples", std::to_string(plan.samples),
                "a multiple of " + counted(place.replicas, "replica") + " x " +
                    counted(plan.microbatches, "micro-batch", "micro-batches"));
  place.micro_batch = plan.samples / parts;
  return place;
}

int place_in_group(const Ranks& ranks, GroupId group, RankId rank) {
  const std::vector<RankId> members = ranks.members(group, rank);
  return static_cast<int>(std::find(members.begin(), members.end(), rank) - members.begin());
}

// Operators that depend on sequence positions state over how many context-parallel ranks the sequence is split; in plans of earlier
// versions they do not.
static void expect_split(const Operation& operation, int cp) {
  const int ranks = std::visit(
      [&](const auto& op) {
        if constexpr (requires { op.split; })
          return op.split.ranks;
        else
          return cp;
      },
      operation);
  if (ranks != cp)
    throw Error("plan", word(operation), "rows of " + counted(ranks, "context-parallel rank"),
                std::to_string(cp) + ", as the axes say; a plan lowered by this version says which positions a rank holds");
}

// The micro-batch of a compute that depends on it. In plans of earlier versions an attention with dropout does not state it; it is that of the
// action, which must have one only.
static std::optional<std::int64_t> microbatch_of(const Plan& plan, const Action& action, const Compute& what) {
  if (what.microbatch) return action.args[what.microbatch->index()];
  const auto* attention = std::get_if<ops::Attention>(&what.op);
  if (!attention || attention->p == 0) return {};
  std::optional<std::int64_t> only;
  const std::vector<Param>& params = plan.segments[action.segment.index()].params;
  for (std::size_t p = 0; p < params.size(); ++p) {
    if (params[p].kind != ParamKind::Microbatch) continue;
    if (only)
      throw Error("plan", "microbatch of attention with dropout", "nothing",
                  "a parameter of segment " + plan.segments[action.segment.index()].name + ", which has several micro-batches");
    only = action.args[p];
  }
  return only;
}

// The samples of the micro-batch that an instruction computes. An operator that is cut into parts along the samples uses a byte range of
// its operands, which hold the parts one after the other; the samples follow from the range.
struct SamplesOf {
  std::int64_t first = 0, count = 0;
};
static SamplesOf samples_of(const Role& role, const Instruction& instruction, std::int64_t micro_batch) {
  for (const std::vector<Use>* uses : {&instruction.writes, &instruction.reads})
    for (const Use& use : *uses) {
      const Buffer& buffer = role.buffers[use.buffer.index()];
      const bool of_samples = buffer.category == Category::Activations || buffer.category == Category::Transient ||
                              buffer.category == Category::Communication;
      if (!of_samples || !use.length || *use.length == Bytes{}) continue;
      const std::int64_t parts = buffer.bytes.value / use.length->value;
      if (micro_batch % parts == 0) return {micro_batch / parts * (use.from.value / use.length->value), micro_batch / parts};
    }
  return {0, micro_batch};
}

OpArguments arguments_of(const Plan& plan, const Ranks& ranks, const RankPlace& place, const Action& action,
                         const Instruction& instruction) {
  const Role& role = plan.roles[ranks.role(place.rank).index()];
  const auto& what = std::get<Compute>(instruction.what);
  expect_split(what.op, place.cp);
  const SamplesOf samples = samples_of(role, instruction, place.micro_batch);
  OpArguments arguments{.samples = samples.count,
                        .samples_of_step = plan.samples,
                        .tp = place.tp,
                        .tp_rank = place.tp_rank,
                        .cp = place.cp,
                        .cp_rank = place.cp_rank,
                        .expert_rank = place.expert_rank};
  if (instruction.layer.valid()) arguments.layer = name_key(role.layers[instruction.layer.index()]);
  if (const std::optional<std::int64_t> index = microbatch_of(plan, action, what))
    arguments.first_sample = (std::int64_t{place.replica} * plan.microbatches + *index) * place.micro_batch + samples.first;
  if (what.slice.valid()) arguments.slice = place_in_group(ranks, what.slice, place.rank);
  arguments.loss_scale = what.loss_scale;
  return arguments;
}

std::string name_of(const Plan& plan, const Ranks& ranks, RankId rank, std::int32_t action, std::int32_t instruction) {
  const Role& role = plan.roles[ranks.role(rank).index()];
  const Action& at = role.actions[static_cast<std::size_t>(action)];
  const Segment& segment = plan.segments[at.segment.index()];
  std::string text = "rank " + std::to_string(rank.value) + ", action " + std::to_string(action) + " (" + segment.name;
  for (std::size_t p = 0; p < segment.params.size(); ++p)
    if (segment.params[p].kind == ParamKind::Microbatch) text += ", micro-batch " + std::to_string(at.args[p]);
  text += "), instruction " + std::to_string(instruction) + " (";
  const Instruction& what = segment.instructions[static_cast<std::size_t>(instruction)];
  text += what.name;
  if (what.layer.valid()) text += " of " + role.layers[what.layer.index()];
  return text + ")";
}

}  // namespace foreshard
