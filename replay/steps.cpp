#include "replay/steps.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace foreshard::player {
namespace {

class StepBuilder {
 public:
  StepBuilder(const Plan& plan, const Patterns& patterns, SegmentId segment, const SegmentMeetings& meetings,
              const StepVariant& variant, int streams, Granularity granularity)
      : instructions_(plan.segments[segment.index()].instructions),
        uses_(patterns.uses[segment.index()]),
        costs_(variant.costs->by_segment[segment.index()]),
        plan_(plan),
        patterns_(patterns),
        meetings_(meetings),
        variant_(variant),
        streams_(streams),
        granularity_(granularity) {}

  SegmentSteps build() {
    find_chains();
    for (std::size_t i = 0; i < instructions_.size(); ++i) {
      if (joined_[i])
        step_of_.push_back(step_of_[static_cast<std::size_t>(predecessor_[i])]);
      else
        open(i);
      extend(step_of_.back(), i);
    }
    close();
    list_streams();
    return std::move(out_);
  }

 private:
  struct Work {
    std::int64_t compute = 0, fixed = 0;  // nanoseconds
    double sm_share = 0;                  // the largest of the merged collectives
    double transfers = 0;                 // seconds
    std::vector<MergedCollective> merged = {};
    std::vector<Stretch> stretches = {};
  };

  // Seconds per byte at which the collective i may be merged into a chain; below 0: it is a step of its own.
  double merged(std::size_t i) const {
    if (granularity_ != Granularity::Stage || uses_[i].collective < 0) return -1;
    return variant_.merged[static_cast<std::size_t>(uses_[i].collective)];
  }
  bool mergeable(std::size_t i) const {
    const auto& what = instructions_[i].what;
    return std::holds_alternative<Compute>(what) || std::holds_alternative<Mark>(what) || merged(i) >= 0;
  }

  // Two collectives may be in one step only if they take the same share of the compute units.
  bool slow_alike(std::size_t a, std::size_t b) const {
    const bool both = uses_[a].collective >= 0 && uses_[b].collective >= 0;
    return !both || costs_[a].sm_share == costs_[b].sm_share;
  }

  // joined_[i]: instruction i is in the same chain as its predecessor on the stream.
  void find_chains() {
    joined_.assign(instructions_.size(), false);
    if (granularity_ == Granularity::Op) return;
    std::vector<std::int32_t> newest(static_cast<std::size_t>(streams_), -1);
    for (std::size_t i = 0; i < instructions_.size(); ++i)
      predecessor_.push_back(std::exchange(newest[instructions_[i].stream.index()], static_cast<std::int32_t>(i)));
    std::vector<char> noticed(instructions_.size(), false);
    for (std::size_t i = 0; i < instructions_.size(); ++i) {
      if (!instructions_[i].records.empty()) noticed[i] = true;
      for (const std::int32_t earlier : instructions_[i].after) noticed[static_cast<std::size_t>(earlier)] = true;
    }
    for (std::size_t i = 0; i < instructions_.size(); ++i) {
      if (predecessor_[i] < 0) continue;
      const auto before = static_cast<std::size_t>(predecessor_[i]);
      joined_[i] = mergeable(i) && mergeable(before) && !noticed[before] && instructions_[i].after.empty() &&
                   instructions_[i].waits.empty() && slow_alike(before, i) &&
                   (granularity_ == Granularity::Stage || instructions_[i].layer == instructions_[before].layer);
    }
  }

  // A new step that begins with instruction i.
  void open(std::size_t i) {
    step_of_.push_back(static_cast<std::int32_t>(out_.steps.size()));
    Step step;
    step.first = static_cast<std::int32_t>(i);
    step.count = 0;
    step.stream = instructions_[i].stream.value;
    step.first_wait = meetings_.first_wait[i];
    step.end_wait = meetings_.first_wait[i + 1];
    step.first_after = static_cast<std::int32_t>(out_.afters.size());
    for (const std::int32_t earlier : instructions_[i].after)
      out_.afters.push_back({instructions_[static_cast<std::size_t>(earlier)].stream.value, earlier});
    step.end_after = static_cast<std::int32_t>(out_.afters.size());
    out_.steps.push_back(step);
    work_.emplace_back();
  }

  void extend(std::int32_t number, std::size_t i) {
    Step& step = out_.steps[static_cast<std::size_t>(number)];
    Work& work = work_[static_cast<std::size_t>(number)];
    step.last = static_cast<std::int32_t>(i);
    ++step.count;
    const auto& what = instructions_[i].what;
    const double rate = merged(i);
    if (std::holds_alternative<Compute>(what)) {
      step.kind = StepKind::Compute;
      work.compute += costs_[i].busy.value;
      stretch(work, to_seconds(costs_[i].busy).value * variant_.slowdown, true);
      return;
    }
    work.fixed += costs_[i].busy.value;
    stretch(work, to_seconds(costs_[i].busy).value, false);
    if (rate >= 0) {
      const double bytes = wire_bytes(i), seconds = bytes * rate;
      work.transfers += seconds;
      stretch(work, seconds, false);
      work.sm_share = std::max(work.sm_share, costs_[i].sm_share);
      merge_collective(work, {patterns_.collective_slot(uses_[i].collective), bytes, seconds});
    } else if (uses_[i].collective >= 0 || uses_[i].copy || uses_[i].to >= 0 || uses_[i].from >= 0) {
      transfer(step, i);
    }
  }

  static void stretch(Work& work, double seconds, bool computes) {
    if (seconds <= 0) return;
    if (work.stretches.empty() || work.stretches.back().computes != computes) work.stretches.push_back({0, computes});
    work.stretches.back().seconds += seconds;
  }

  static void merge_collective(Work& work, const MergedCollective& more) {
    for (MergedCollective& known : work.merged)
      if (known.slot == more.slot) {
        known.bytes += more.bytes;
        known.seconds += more.seconds;
        return;
      }
    work.merged.push_back(more);
  }

  double wire_bytes(std::size_t i) const {
    const auto& what = instructions_[i].what;
    double bytes = 0;
    if (const auto* exchange = std::get_if<Exchange>(&what)) bytes = static_cast<double>(exchange->bytes.value);
    if (const auto* copy = std::get_if<Copy>(&what)) bytes = static_cast<double>(copy->bytes.value);
    if (const auto* collective = std::get_if<Collective>(&what))
      bytes = static_cast<double>(collective->bytes.value) * patterns_.volume[static_cast<std::size_t>(uses_[i].collective)];
    return bytes * costs_[i].wire_factor;
  }

  void transfer(Step& step, std::size_t i) {
    step.bytes = wire_bytes(i);
    step.sm_share = costs_[i].sm_share;
    step.meeting = meetings_.meeting[i];
    step.from = meetings_.from[i];
    if (uses_[i].collective >= 0) {
      step.kind = StepKind::Collective;
      step.slot = patterns_.collective_slot(uses_[i].collective);
    } else if (uses_[i].copy) {
      if (!variant_.role.valid()) return;  // no copy of the role leaves its device
      const int copy = copy_pattern(patterns_, plan_.roles[variant_.role.index()], instructions_[i]);
      if (copy < 0) return;  // stays on its device: as long as its cost says
      step.kind = StepKind::Copy;
      step.slot = patterns_.copy_slot(copy);
    } else {
      step.kind = StepKind::Exchange;
      if (uses_[i].to >= 0) step.slot = patterns_.to_slot(uses_[i].to);
      if (uses_[i].from >= 0) step.from_slot = patterns_.from_slot(uses_[i].from);
    }
  }

  void close() {
    for (std::size_t n = 0; n < work_.size(); ++n) {
      Step& step = out_.steps[n];
      const Work& work = work_[n];
      const double computing = static_cast<double>(work.compute) * 1e-9 * variant_.slowdown;
      step.seconds = computing + static_cast<double>(work.fixed) * 1e-9 + work.transfers;
      if (step.kind == StepKind::Fixed) step.sm_share = work.sm_share;
      step.computing = computing;
      step.first_stretch = static_cast<std::int32_t>(out_.stretches.size());
      if (step.kind == StepKind::Compute && computing < step.seconds)
        out_.stretches.insert(out_.stretches.end(), work.stretches.begin(), work.stretches.end());
      step.end_stretch = static_cast<std::int32_t>(out_.stretches.size());
      step.first_merged = static_cast<std::int32_t>(out_.merged.size());
      out_.merged.insert(out_.merged.end(), work.merged.begin(), work.merged.end());
      step.end_merged = static_cast<std::int32_t>(out_.merged.size());
    }
  }

  void list_streams() {
    out_.first_of_stream.assign(static_cast<std::size_t>(streams_) + 1, 0);
    for (const Step& step : out_.steps) ++out_.first_of_stream[static_cast<std::size_t>(step.stream) + 1];
    std::partial_sum(out_.first_of_stream.begin(), out_.first_of_stream.end(), out_.first_of_stream.begin());
    out_.of_stream.resize(out_.steps.size());
    std::vector<std::int32_t> next(out_.first_of_stream.begin(), out_.first_of_stream.end() - 1);
    for (std::size_t n = 0; n < out_.steps.size(); ++n)
      out_.of_stream[static_cast<std::size_t>(next[static_cast<std::size_t>(out_.steps[n].stream)]++)] =
          static_cast<std::int32_t>(n);
  }

  const std::vector<Instruction>& instructions_;
  const std::vector<InstructionUse>& uses_;
  const std::vector<Cost>& costs_;
  const Plan& plan_;
  const Patterns& patterns_;
  const SegmentMeetings& meetings_;
  const StepVariant& variant_;
  int streams_;
  Granularity granularity_;
  std::vector<std::int32_t> predecessor_ = {}, step_of_ = {};
  std::vector<char> joined_ = {};
  std::vector<Work> work_ = {};
  SegmentSteps out_ = {};
};

}  // namespace

SegmentSteps make_steps(const Plan& plan, const Patterns& patterns, SegmentId segment, const SegmentMeetings& meetings,
                        const StepVariant& variant, int streams, Granularity granularity) {
  return StepBuilder(plan, patterns, segment, meetings, variant, streams, granularity).build();
}

}  // namespace foreshard::player
