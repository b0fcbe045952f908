#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/error.h"
#include "exec/interpreter/measured_trace.h"

namespace foreshard {

Seconds transfer_time(const LinkModel& link, Bytes bytes) { return link.latency + bytes / link.bandwidth; }

Seconds transfer_time(const LinkModel& link, const Collective& collective, std::size_t members) {
  if (members < 2) return {};
  double steps = static_cast<double>(members) - 1, share = steps / static_cast<double>(members);
  switch (collective.kind) {
    case CollectiveKind::AllReduce: steps *= 2, share *= 2; break;
    case CollectiveKind::ReduceScatter:
    case CollectiveKind::AllGather:
    case CollectiveKind::AllToAll: break;
    case CollectiveKind::Broadcast:
    case CollectiveKind::Reduce: share = 1; break;
  }
  return link.latency * steps + (collective.bytes / link.bandwidth) * share;
}

namespace {

// Those who meet: a collective, or the two ends of a message.
struct Meeting {
  std::size_t arrived = 0;
  std::int64_t begin = 0;  // when the last one arrived
};

class Composition {
 public:
  Composition(const Plan& plan, const Ranks& ranks, std::vector<RankRun> runs, const LinkModel& link)
      : plan_(plan), ranks_(ranks), link_(link), runs_(std::move(runs)) {
    for (std::size_t r = 0; r < runs_.size(); ++r) {
      const Role& role = role_of(r);
      std::vector<std::vector<int>> streams(role.streams.size());
      for (std::size_t s = 0; s < runs_[r].steps->size(); ++s)
        streams[(*runs_[r].steps)[s].stream.index()].push_back(static_cast<int>(s));
      done_.emplace_back(runs_[r].steps->size(), 0);
      arrived_.emplace_back(runs_[r].steps->size(), 0);
      for (std::vector<int>& steps : streams)
        if (!steps.empty()) streams_.push_back({.rank = r, .steps = std::move(steps)});
    }
  }

  std::vector<RankRun> play() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (StreamState& stream : streams_)
        while (stream.next < stream.steps.size() && advance(stream)) moved = true;
    }
    for (const StreamState& stream : streams_)
      if (stream.next < stream.steps.size())
        throw Error("plan", "rank " + std::to_string(stream.rank), "steps that wait for each other", "an order");
    return std::move(runs_);
  }

 private:
  struct StreamState {
    std::size_t rank = 0;
    std::vector<int> steps = {};
    std::size_t next = 0;
    std::int64_t free = 0;
  };

  const Role& role_of(std::size_t rank) const { return plan_.roles[ranks_.role({static_cast<std::int32_t>(rank)}).index()]; }

  bool advance(StreamState& stream) {
    const std::size_t r = stream.rank;
    const auto s = static_cast<std::size_t>(stream.steps[stream.next]);
    const RankStep& step = (*runs_[r].steps)[s];
    StepSpan& span = runs_[r].spans[s];
    if (!arrived_[r][s]) {
      std::int64_t ready = stream.free;
      for (const int other : step.after) {
        const auto on = static_cast<std::size_t>(other);
        if (!done_[r][on]) return false;
        ready = std::max(ready, runs_[r].spans[on].end);
      }
      arrived_[r][s] = 1;
      span.ready = span.begin = ready;
      arrive(r, step, ready);
    }
    if (!finish(r, step, span)) return false;
    done_[r][s] = 1;
    stream.free = span.end;
    ++stream.next;
    return true;
  }

  using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t, std::string, std::int64_t>;
  Meeting& party(const RankStep& step, const Collective& what) {
    return meetings_[{0, what.group.value, step.members.front().value, "", step.sequence}];
  }
  Meeting& parcel(std::int32_t from, std::int32_t to, const Exchange& what, std::int64_t sequence) {
    return meetings_[{1, from, to, what.tag, sequence}];
  }
  static void join(Meeting& meeting, std::int64_t when) {
    ++meeting.arrived;
    meeting.begin = std::max(meeting.begin, when);
  }

  void arrive(std::size_t r, const RankStep& step, std::int64_t when) {
    const auto own = static_cast<std::int32_t>(r);
    const Instruction& instruction = instruction_of(plan_, role_of(r), step);
    if (const auto* collective = std::get_if<Collective>(&instruction.what)) join(party(step, *collective), when);
    if (const auto* exchange = std::get_if<Exchange>(&instruction.what)) {
      if (step.to.valid()) join(parcel(own, step.to.value, *exchange, step.sent), when);
      if (step.from.valid()) join(parcel(step.from.value, own, *exchange, step.received), when);
    }
  }

  // Its end, when everybody it talks to has arrived.
  bool finish(std::size_t r, const RankStep& step, StepSpan& span) {
    const auto own = static_cast<std::int32_t>(r);
    const Instruction& instruction = instruction_of(plan_, role_of(r), step);
    if (const auto* collective = std::get_if<Collective>(&instruction.what)) {
      const Meeting& meeting = party(step, *collective);
      if (meeting.arrived < step.members.size()) return false;
      span.begin = meeting.begin;
      span.end = span.begin + to_nanoseconds(transfer_time(link_, *collective, step.members.size())).value;
    } else if (const auto* exchange = std::get_if<Exchange>(&instruction.what)) {
      for (const bool sends : {true, false}) {
        if (!(sends ? step.to : step.from).valid()) continue;
        const Meeting& meeting =
            sends ? parcel(own, step.to.value, *exchange, step.sent) : parcel(step.from.value, own, *exchange, step.received);
        if (meeting.arrived < 2) return false;
        span.begin = std::max(span.begin, meeting.begin);
      }
      span.end = span.begin + to_nanoseconds(transfer_time(link_, exchange->bytes)).value;
    } else {
      span.end = span.begin + span.own;
    }
    return true;
  }

  const Plan& plan_;
  const Ranks& ranks_;
  const LinkModel& link_;
  std::vector<RankRun> runs_;
  std::vector<StreamState> streams_;
  std::vector<std::vector<char>> done_, arrived_;  // [rank][step]
  std::map<Key, Meeting> meetings_;
};

}  // namespace

std::vector<RankRun> compose(const Plan& plan, const Ranks& ranks, std::vector<RankRun> runs, const LinkModel& link) {
  return Composition(plan, ranks, std::move(runs), link).play();
}

}  // namespace foreshard
