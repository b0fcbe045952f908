#include "exec/interpreter/measured_trace.h"

#include <algorithm>

namespace foreshard {

Trace measured_trace(const Plan& plan, const Ranks& ranks, std::vector<RankRun> runs) {
  Trace trace{.origin = Origin::Measured, .plan_hash = program_hash(plan)};
  std::int64_t first = INT64_MAX, last = INT64_MIN;
  std::size_t count = 0;
  for (const RankRun& run : runs) {
    count += run.spans.size();
    for (const StepSpan& span : run.spans) first = std::min(first, span.ready), last = std::max(last, span.end);
  }
  if (count == 0) first = last = 0;
  trace.makespan = {last - first};
  trace.spans.reserve(count);
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const RankId rank{static_cast<std::int32_t>(r)};
    trace.classes.push_back({.role = ranks.role(rank), .members = {rank}});
    const auto begin = static_cast<std::ptrdiff_t>(trace.spans.size());
    for (std::size_t s = 0; s < runs[r].spans.size(); ++s) {
      const RankStep& step = (*runs[r].steps)[s];
      StepSpan span = runs[r].spans[s];
      if (span.count == 0) continue;
      int members = 1;
      for (std::size_t other = s + 1; members < span.count && other < runs[r].spans.size(); ++other)
        if ((*runs[r].steps)[other].stream == step.stream) span.end = std::max(span.end, runs[r].spans[other].end), ++members;
      trace.spans.push_back({.who = {rank.value},
                             .action = step.action,
                             .instruction = step.instruction,
                             .count = span.count,
                             .stream = step.stream,
                             .ready = {span.ready - first},
                             .begin = {span.begin - first},
                             .end = {span.end - first}});
    }
    // A stable sort: the steps of one stream are already in the order in which they ran.
    std::stable_sort(trace.spans.begin() + begin, trace.spans.end(),
                     [](const Span& a, const Span& b) { return a.stream < b.stream; });
  }
  return trace;
}

}  // namespace foreshard
