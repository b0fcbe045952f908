#include "report/causes/critical_path.h"

#include <algorithm>
#include <cmath>

#include "report/causes/occupancy.h"
#include "report/words/span_words.h"

namespace foreshard {

static PathKind kind_of(const Instruction& instruction) {
  if (std::holds_alternative<Exchange>(instruction.what)) return PathKind::Transfer;
  if (std::holds_alternative<Collective>(instruction.what)) return PathKind::Collective;
  if (std::holds_alternative<Copy>(instruction.what)) return PathKind::Copy;
  return PathKind::Compute;
}

PathTimes path_times(const Plan& plan, const Trace& trace, const std::vector<ChainStep>& chain) {
  const SumsByRole sums = sums_by_role(plan);
  PathTimes times = {};
  const auto add = [&](PathKind kind, std::int64_t time) { times[static_cast<std::size_t>(kind)].value += time; };
  for (const ChainStep& link : chain) {
    const Span& span = trace.spans[static_cast<std::size_t>(link.span)];
    const std::int64_t from = std::clamp(span.begin.value, link.begin.value, link.end.value);
    const std::int64_t own = link.end.value - from, length = (span.end - span.begin).value;
    add(PathKind::Waiting, from - link.begin.value);
    if (span.count == 1 || length <= 0) {
      add(kind_of(instruction_of(plan, trace, span)), own);
      continue;
    }
    const RoleId role = trace.classes[span.who.index()].role;
    const Nanoseconds communication = sums[role].communication(action_of(plan, trace, span).segment, span);
    const std::int64_t collective =
        std::llround(static_cast<double>(communication.value) / static_cast<double>(length) * static_cast<double>(own));
    add(PathKind::Collective, collective);
    add(PathKind::Compute, own - collective);
  }
  return times;
}

}  // namespace foreshard
