#include "strategy/estimate/isolated_action.h"

#include <algorithm>
#include <map>

#include "core/plan/cost_tables.h"

namespace foreshard {

namespace {

bool to_other_stage(const Instruction& run) {
  const auto* exchange = std::get_if<Exchange>(&run.what);
  if (!exchange) return false;
  const Peer& peer = exchange->to ? *exchange->to : *exchange->from;
  return peer.role_shift != 0;
}

// The end of the newest record before instruction `i` that `wait` binds to; 0: another action made it.
double recorded(const std::vector<Instruction>& runs, const std::vector<double>& ends, std::size_t i, const EventUse& wait) {
  while (i-- > 0)
    if (std::ranges::find(runs[i].records, wait) != runs[i].records.end()) return ends[i];
  return 0;
}

}  // namespace

IsolatedAction isolated_action(const Plan& plan, IsolatedTimes& alone, RoleId role, int action) {
  if (action < 0) return {};
  const SegmentId id = plan.roles[role.index()].actions[static_cast<std::size_t>(action)].segment;
  const std::vector<Instruction>& runs = plan.segments[id.index()].instructions;
  const std::vector<Cost>& costs = costs_of(plan, plan.roles[role.index()]).by_segment[id.index()];
  struct Stream {
    double end = 0, busy = 0;
  };
  std::map<std::int32_t, Stream> streams;
  IsolatedAction times;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Instruction& run = runs[i];
    Stream& stream = streams[run.stream.value];
    double begin = stream.end;
    for (const std::int32_t before : run.after) begin = std::max(begin, times.ends[static_cast<std::size_t>(before)]);
    for (const EventUse& wait : run.waits) begin = std::max(begin, recorded(runs, times.ends, i, wait));
    const bool leaves = to_other_stage(run);
    const double seconds = alone.duration(role, run, costs[i]);
    if (leaves && times.send == 0) times.send = seconds;
    if (!leaves) stream.busy += seconds;
    if (run.stream.value == 0 && std::holds_alternative<Compute>(run.what)) times.compute += seconds;
    stream.end = leaves ? begin : begin + seconds;
    times.ends.push_back(stream.end);
  }
  times.whole = streams[0].end;
  for (const auto& [number, stream] : streams) times.whole = std::max(times.whole, stream.busy);
  return times;
}

}  // namespace foreshard
