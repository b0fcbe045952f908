// Checks a strategy's schedule against its other choices.
#include <string>

#include "strategy/resolve/resolve.h"
#include "strategy/resolve/schedule_table.h"
#include "strategy/schedule/schedule.h"
#include "strategy/schedule/schedule_read.h"

namespace foreshard {

namespace {

using Refusal = std::optional<Infeasible>;

// Schedules with two routes hold every stage on two ranks.
Refusal refuse_with_routes(const Strategy& s) {
  const std::string name = name_of(*s.pipeline.schedule);
  if (s.zero.stage > 1)
    return Infeasible{.reason = "schedule " + name + " has every stage on two ranks, ZeRO " + std::to_string(s.zero.stage) +
                                " cuts the gradients of one",
                      .would_help = {"--zero 1", "--schedule dualpipe-v"}};
  if (s.optimizer.clip_norm.value_or(0) > 0 || s.optimizer.loss_scale == 0)
    return Infeasible{.reason = "schedule " + name +
                                " has every stage on two ranks, the norm of all gradients would count each of them twice",
                      .would_help = {"--clip-norm 0", "--loss-scale 1", "--schedule dualpipe-v"}};
  if (s.recompute.kind >= RecomputeKind::Rotor)
    return Infeasible{.reason = "schedule " + name + " has every stage on two ranks, recompute " + to_text(s.recompute) +
                                " plans the runs of one",
                      .would_help = {"--recompute full", "--schedule dualpipe-v"}};
  return {};
}

// Asynchronous schedules update the stages one by one, between their backwards.
Refusal refuse_asynchronous(const Model& model, const Strategy& s) {
  const std::string name = name_of(*s.pipeline.schedule);
  const auto* transformer = std::get_if<Transformer>(&model.shape);
  if (s.zero.stage > 0)
    return Infeasible{.reason = "schedule " + name + " updates each stage by itself, ZeRO " + std::to_string(s.zero.stage) +
                                " gathers parameters once for a step",
                      .would_help = {"--zero 0", "--schedule 1f1b"}};
  if (s.optimizer.clip_norm.value_or(0) > 0 || s.optimizer.loss_scale == 0)
    return Infeasible{
        .reason = "schedule " + name + " updates each stage by itself, the norm of all gradients is that of all stages",
        .would_help = {"--clip-norm 0", "--loss-scale 1", "--schedule 1f1b"}};
  if (transformer && shares_embedding(*transformer) && s.pp > 1)
    return Infeasible{.reason = "schedule " + name +
                                " updates each stage by itself, a tied embedding takes the gradients of the first and the last "
                                "stage: the last would wait in each update until the gradient has passed all stages, and the "
                                "pipeline would run empty",
                      .would_help = {"--set model.tie_word_embeddings=false", "--schedule 1f1b"}};
  const OffloadChoice& offload = s.offload;
  if (offload.parameters != Space::Device || offload.gradients != Space::Device || offload.update_per_layer)
    return Infeasible{.reason = "schedule " + name +
                                " updates each stage by itself, offloaded parameters and gradients come and go once for a step",
                      .would_help = {"--offload-parameters device --offload-gradients device", "--schedule 1f1b"}};
  if (s.recompute.kind >= RecomputeKind::Rotor)
    return Infeasible{.reason = "schedule " + name + " updates each stage by itself, recompute " + to_text(s.recompute) +
                                " plans the runs of a step",
                      .would_help = {"--recompute full", "--schedule 1f1b"}};
  return {};
}

// --schedule best: tune will search for an order with split backwards and one stage per rank.
Refusal refuse_best_order(const Strategy& s) {
  if (s.virtual_stages > 1)
    return Infeasible{.reason = "schedule best finds an order of one stage per rank, the strategy asks for " +
                                std::to_string(s.virtual_stages),
                      .would_help = {"--virtual-stages 1", "--schedule interleaved-1f1b"}};
  if (s.zero.stage >= 2)
    return Infeasible{
        .reason = "schedule best needs unsharded gradients, which ZeRO " + std::to_string(s.zero.stage) + " shards",
        .would_help = {"--zero 1", "--schedule 1f1b"}};
  if (s.recompute.kind >= RecomputeKind::Rotor)
    return Infeasible{.reason = "schedule best finds an order for times that it knows, recompute " + to_text(s.recompute) +
                                " plans its runs for an order",
                      .would_help = {"--recompute best", "--schedule 1f1b"}};
  return {};
}

Refusal refuse_lists(const Strategy& s, const ScheduleShape& shape) {
  if (s.pipeline.order.empty())
    return Infeasible{.reason = "schedule file has no lists", .would_help = {"--schedule file:F", "--schedule 1f1b"}};
  if (s.framework != Strategy{}.framework)
    return Infeasible{.reason = "the schedules of framework " + s.framework + " are its own, not those of a file",
                      .would_help = {"--framework foreshard", "--schedule 1f1b"}};
  if (chooses_order(s)) return refuse_best_order(s);
  const ScheduleLists lists = parse_order(s.pipeline.order);
  if (const auto wrong = wrong_size(lists, shape))
    return Infeasible{.reason = "the lists of schedule file do not fit: " + *wrong,
                      .would_help = {"another --pp, --virtual-stages or --global-batch"}};
  std::vector<std::string> blocked;
  if (!evaluate(lists, equal_times<std::int64_t>(shape.p * shape.v, 1, 1, 1), &blocked))
    return Infeasible{.reason = "the lists of schedule file deadlock: " + blocked.front()};
  return {};
}

}  // namespace

std::optional<Infeasible> resolve_schedule(const Model& model, Strategy& s) {
  if (!s.pipeline.schedule) s.pipeline.schedule = s.virtual_stages > 1 ? Schedule::Interleaved : Schedule::OneFOneB;
  const ScheduleEntry& entry = schedule_entry(*s.pipeline.schedule);
  const auto m = static_cast<int>(s.batch.global / (s.batch.micro * s.dp));
  if (s.virtual_stages > 1 && s.pp == 1)
    return Infeasible{.reason = "virtual stages need a pipeline of at least 2 ranks: found " +
                                std::to_string(s.virtual_stages) + " virtual stages with pp 1",
                      .would_help = {"--virtual-stages 1", "--pp 2"}};
  if (s.virtual_stages > 1 && entry.chunks == Chunks::One)
    return Infeasible{.reason = "schedule " + entry.name + " has one stage per rank, the strategy asks for " +
                                std::to_string(s.virtual_stages),
                      .would_help = {"--schedule interleaved-1f1b", "--virtual-stages 1"}};
  if (s.pipeline.delay_wgrad && !entry.cells)
    return Infeasible{.reason = "delay_wgrad is of schedules of cells; " + entry.name + " is none",
                      .would_help = {"--schedule 1f1b-cells", "--schedule interleaved-cells"}};
  if (entry.routes > 1)
    if (auto refused = refuse_with_routes(s)) return refused;
  if (entry.backwards_per_update)
    if (auto refused = refuse_asynchronous(model, s)) return refused;
  if (*s.pipeline.schedule == Schedule::Listed)
    if (auto refused = refuse_lists(s, {.p = s.pp, .m = m, .v = s.virtual_stages})) return refused;
  if (splits_backwards(s) && s.zero.stage >= 2)  // an unsharded gradient would have to be kept from I to W
    return Infeasible{.reason = "schedule " + entry.name + " needs unsharded gradients, which ZeRO " +
                                std::to_string(s.zero.stage) + " shards",
                      .would_help = {"--zero 1", "--schedule 1f1b"}};
  if (*s.pipeline.schedule == Schedule::Listed) return {};
  return entry.refuse(schedule_shape(s, m));
}

}  // namespace foreshard
