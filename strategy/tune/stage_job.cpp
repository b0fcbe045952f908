#include "strategy/tune/stage_job.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "core/base/at.h"
#include "core/network/network.h"
#include "core/plan/ranks.h"
#include "strategy/estimate/isolated_times.h"

namespace foreshard {

namespace {

class JobTimes {
 public:
  JobTimes(HeldValues& held, const Plan& plan, const Cluster& cluster, const OpGraph& graph)
      : held_(held), plan_(plan), cluster_(cluster), isolated_(plan, cluster) {
    for (std::size_t op = 0; op < held.operators.size(); ++op) {
      const OpGraph::Layer& layer = graph.layers[at(held.operators[op].layer)];
      const std::string& name = graph.kinds[at(layer.kind)].operators[at(held.operators[op].op)].name;
      numbers_[layer.name + "/" + name] = static_cast<int>(op);
    }
  }

  void fill(int stage, Space home) {
    for (std::int32_t role = 0; role < static_cast<std::int32_t>(plan_.roles.size()); ++role)
      for (const Work work : {Work::F, Work::B}) {
        const std::vector<Action>& actions = plan_.roles[at(role)].actions;
        const auto does = [&](const Action& action) {
          return !action.does.empty() && action.does.front().work == work && action.does.front().stage == stage;
        };
        if (const auto action = std::ranges::find_if(actions, does); action != actions.end())
          walk({role}, action->segment, work == Work::B, home);
      }
  }

 private:
  // The operators of the segment in their order; what is not named after one belongs to the operator before it.
  void walk(RoleId role_id, SegmentId segment, bool backward, Space home) {
    const Role& role = plan_.roles[role_id.index()];
    const std::vector<Instruction>& runs = plan_.segments[segment.index()].instructions;
    int now = backward ? static_cast<int>(held_.operators.size()) : 0;
    Bytes live = {};
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const Instruction& run = runs[i];
      const Cost& cost = plan_.costs.front().by_segment[segment.index()][i];
      const double seconds = isolated_.duration(role_id, run, cost);
      const int op = number_of(role, run);
      if (op >= 0) now = backward ? std::max(now, held_.backward_of(op)) : op;
      TimedOperation& operation = held_.job.operations[at(now)];
      if (op >= 0 || std::holds_alternative<Compute>(run.what)) operation.compute += Seconds{seconds};
      if (const auto* copy = std::get_if<Copy>(&run.what); copy && is_between(role, run, home))
        measure(role_id, *copy, cost, home);
      for (const Block& block : run.acquires) live += beside(role, block);
      operation.others = std::max(operation.others, live);
      for (const Block& block : run.releases) live = live - beside(role, block);
    }
  }

  int number_of(const Role& role, const Instruction& run) const {
    if (!run.layer.valid() || std::holds_alternative<Copy>(run.what)) return -1;
    const auto found = numbers_.find(role.layers[run.layer.index()] + "/" + run.name.substr(0, run.name.find(' ')));
    return found == numbers_.end() ? -1 : found->second;
  }

  // Of what is there beside the values of the job.
  static Bytes beside(const Role& role, const Block& block) {
    const Buffer& buffer = role.buffers[block.buffer.index()];
    return buffer.space == Space::Device && buffer.category != Category::Activations ? buffer.bytes : Bytes{};
  }
  static bool is_between(const Role& role, const Instruction& run, Space home) {
    return role.buffers[run.reads.front().buffer.index()].space == home;
  }

  void measure(RoleId role, const Copy&, const Cost& cost, Space home) {
    const Network network(cluster_);
    const Ranks ranks(plan_);
    const Endpoint end = home == Space::Nvme ? Endpoint::Nvme : Endpoint::HostMemory;
    const Route route = network.host_route(ranks.device(ranks.first(role)), end, true);
    held_.job.link.setup = {static_cast<double>(cost.busy.value) * 1e-9};
    if (route.rate.value > 0 && cost.wire_factor > 0)
      held_.job.link.bandwidth = {route.rate.value / cost.wire_factor};
  }

  HeldValues& held_;
  const Plan& plan_;
  const Cluster& cluster_;
  IsolatedTimes isolated_;
  std::map<std::string, int> numbers_ = {};  // "layer/operator"
};

}  // namespace

void time_job(HeldValues& held, const Plan& plan, const Cluster& cluster, const OpGraph& graph, int stage, Space home) {
  JobTimes(held, plan, cluster, graph).fill(stage, home);
}

}  // namespace foreshard
