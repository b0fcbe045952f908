#include "strategy/server/asynchronous_server.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/at.h"
#include "strategy/lower/loss_scale.h"
#include "strategy/lower/memory_planner.h"

namespace foreshard {

namespace {

bool computes_gradients(const Action& action) {
  return std::ranges::any_of(action.does, [](const Does& does) { return does.work != Work::Update; });
}

// Calls `visit` with every buffer index of an instruction.
template <class Run, class Visit>
void each_buffer(Run& run, Visit visit) {
  for (auto* uses : {&run.reads, &run.writes})
    for (auto& use : *uses) visit(use.buffer);
  for (auto* blocks : {&run.acquires, &run.releases})
    for (auto& block : *blocks) visit(block.buffer);
}

// The part of the plan of one worker that a role takes over: some of its actions, and the buffers that they use.
class Share {
 public:
  Share(const Plan& one, bool gradients, Plan& out) : one_(one), out_(out) {
    const Role& role = one.roles[0];
    std::set<BufferId> used;
    for (std::size_t b = 0; b < role.buffers.size(); ++b)
      if (exchanged(role.buffers[b])) used.insert({static_cast<std::int32_t>(b)});
    for (const Action& action : role.actions) {
      if (computes_gradients(action) != gradients) continue;
      actions_.push_back(action);
      for (const Instruction& run : segment(action).instructions) {
        each_buffer(run, [&](const BufferId& buffer) { used.insert(buffer); });
        for (const EventUse& event : run.waits) waits_.insert(event.event);
        for (const EventUse& event : run.records) records_.insert(event.event);
      }
    }
    for (const BufferId buffer : used) {
      to_[buffer] = {static_cast<std::int32_t>(buffers_.size())};
      buffers_.push_back(role.buffers[buffer.index()]);
    }
    for (Action& action : actions_) action.segment = taken_over(action.segment);
  }

  static bool exchanged(const Buffer& buffer) {
    return buffer.category == Category::Parameters || buffer.category == Category::Gradients;
  }
  // Whether it waits for no event of the other role.
  bool complete() const { return std::ranges::includes(records_, waits_); }
  const std::vector<Action>& actions() const { return actions_; }
  Role role(std::string name) const {
    const Role& from = one_.roles[0];
    return {.name = std::move(name),
            .device_kind = from.device_kind,
            .streams = from.streams,
            .events = from.events,
            .layers = from.layers,
            .buffers = buffers_};
  }
  // An action that sends all buffers of a category to the peer, or receives them. It is on the stream of the computes, behind them.
  Action exchange(const std::string& name, Category category, const Peer& peer, bool sends) const {
    Segment segment{.name = name};
    for (std::size_t b = 0; b < buffers_.size(); ++b) {
      if (buffers_[b].category != category) continue;
      Instruction run{.name = name, .what = Exchange{.tag = name, .bytes = buffers_[b].bytes}, .stream = {0}};
      auto& what = std::get<Exchange>(run.what);
      (sends ? what.to : what.from) = peer;
      (sends ? run.reads : run.writes) = {{.buffer = {static_cast<std::int32_t>(b)}}};
      segment.instructions.push_back(std::move(run));
    }
    out_.segments.push_back(std::move(segment));
    return {.segment = {static_cast<std::int32_t>(out_.segments.size()) - 1}};
  }

 private:
  const Segment& segment(const Action& action) const { return one_.segments[action.segment.index()]; }
  SegmentId taken_over(SegmentId id) {
    const auto [known, fresh] = segments_.try_emplace(id);
    if (!fresh) return known->second;
    Segment copy = one_.segments[id.index()];
    for (Instruction& run : copy.instructions) each_buffer(run, [&](BufferId& buffer) { buffer = to_.at(buffer); });
    out_.segments.push_back(std::move(copy));
    return known->second = {static_cast<std::int32_t>(out_.segments.size()) - 1};
  }

  const Plan& one_;
  Plan& out_;
  std::vector<Action> actions_ = {};
  std::vector<Buffer> buffers_ = {};
  std::map<BufferId, BufferId> to_ = {};
  std::map<SegmentId, SegmentId> segments_ = {};
  std::set<EventId> waits_ = {}, records_ = {};
};

// The computes of worker `worker`: of micro-batches behind those of the workers before it.
Action of_worker(Action action, const Plan& plan, int worker, int microbatches) {
  const std::vector<Param>& params = plan.segments[action.segment.index()].params;
  for (std::size_t p = 0; p < params.size(); ++p)
    if (params[p].kind == ParamKind::Microbatch) action.args[p] += worker * microbatches;
  for (Does& does : action.does) does.microbatch += worker * microbatches;
  return action;
}

std::optional<std::string> why_not(const Plan& one, int workers) {
  if (workers < 1) return "an asynchronous server has at least one worker";
  if (one.roles.size() != 1 || std::ranges::any_of(one.axes, [](const Axis& axis) { return axis.size > 1; }))
    return "each worker of an asynchronous server is one device";
  if (one.updates != 1) return "a worker of an asynchronous server pushes gradients once in a run";
  if (!one.placement.explicit_devices.empty()) return "the devices of an asynchronous server are 0, 1, ... in order";
  for (const Buffer& buffer : one.roles[0].buffers)
    if (Share::exchanged(buffer) && (!buffer.resident || buffer.space != Space::Device || buffer.offsets.size() != 1))
      return "a worker of an asynchronous server keeps its parameters and gradients on its device";
  for (const Segment& segment : one.segments)
    for (const Instruction& run : segment.instructions) {
      if (!std::holds_alternative<Compute>(run.what) && !std::holds_alternative<Mark>(run.what))
        return "a worker of an asynchronous server computes on its device only";
      if (const auto* what = std::get_if<Compute>(&run.what); what && what->dynamic_scale)
        return "a dynamic loss scale needs the gradients of all workers";
    }
  return {};
}

// The static loss scale of the plan.
double loss_scale_of(const Plan& plan) {
  for (const Segment& segment : plan.segments)
    for (const Instruction& run : segment.instructions)
      if (const auto* what = std::get_if<Compute>(&run.what);
          what && what->phase == Phase::Update && takes_loss_scale(what->op, what->phase))
        return what->loss_scale;
  return 1;
}

}  // namespace

std::variant<Plan, Infeasible> asynchronous_server(const Plan& one, int workers) {
  const auto refuse = [](std::string reason) {
    return Infeasible{.reason = std::move(reason), .would_help = {"--dp 1 --tp 1 --pp 1"}};
  };
  if (auto reason = why_not(one, workers)) return refuse(std::move(*reason));
  Plan plan = one;
  plan.roles.clear(), plan.segments.clear(), plan.costs.clear();
  plan.samples *= workers, plan.microbatches *= workers, plan.updates = workers;
  const Share updates(one, false, plan), computes(one, true, plan);
  if (!updates.complete() || !computes.complete()) return refuse("an update of a worker waits for its backward");
  Role server = updates.role("server");
  std::vector<Role> roles;
  for (int w = 0; w < workers; ++w) {
    const Peer to_worker{.role_shift = w + 1}, to_server{.role_shift = -(w + 1)};
    Role worker = computes.role("worker " + std::to_string(w));
    for (const Action& action : computes.actions()) worker.actions.push_back(of_worker(action, plan, w, one.microbatches));
    worker.actions.push_back(computes.exchange("push", Category::Gradients, to_server, true));
    worker.actions.push_back(computes.exchange("pull", Category::Parameters, to_server, false));
    server.actions.push_back(updates.exchange("push", Category::Gradients, to_worker, false));
    for (Action action : updates.actions()) {
      for (Does& does : action.does) does.version = w + 1;
      server.actions.push_back(std::move(action));
    }
    server.actions.push_back(updates.exchange("pull", Category::Parameters, to_worker, true));
    roles.push_back(std::move(worker));
  }
  plan.roles.push_back(std::move(server));
  for (Role& role : roles) plan.roles.push_back(std::move(role));
  plan = with_loss_scale(std::move(plan), loss_scale_of(one));
  plan_memory(plan);
  return plan;
}

}  // namespace foreshard
