#include <algorithm>
#include <map>
#include <tuple>

#include "core/base/error.h"
#include "core/plan/ranks.h"
#include "tests/report/played.h"

namespace foreshard::played {

namespace {

struct Step {  // one instruction of one action of one rank
  int action = 0, instruction = 0, stream = 0;
  Nanoseconds length = {};
  std::vector<int> local = {};                 // steps of the same rank that have to end before
  std::vector<std::pair<int, int>> with = {};  // (rank, step) that have to be ready too
  bool is_ready = false, done = false;
  Nanoseconds ready = {}, begin = {}, end = {};
};

struct Player {
  const Plan& plan;
  const Slow& slow;
  Ranks ranks{plan};
  std::vector<std::vector<Step>> steps = {};  // [rank], issue order
  std::map<std::tuple<int, int, std::string>, std::vector<std::pair<int, int>>> sends = {}, receives = {};
  std::map<std::tuple<int, int, int>, std::vector<std::pair<int, int>>> gatherings = {};  // (group, first member, k)

  const Role& role(int rank) const { return plan.roles[ranks.role({rank}).index()]; }

  static int slot(const Slot& slot, const Action& action) {
    if (const auto* fixed = std::get_if<std::int32_t>(&slot.which)) return *fixed;
    return action.args[std::get<ParamId>(slot.which).index()];
  }

  void issue(int rank) {
    std::map<std::pair<int, int>, int> recorded;  // (event, slot) -> step
    std::map<int, int> newest, visits;            // stream -> step; group -> times
    std::vector<Step>& own = steps[static_cast<std::size_t>(rank)];
    for (std::size_t a = 0; a < role(rank).actions.size(); ++a) {
      const Action& action = role(rank).actions[a];
      const int base = static_cast<int>(own.size());
      const auto& instructions = plan.segments[action.segment.index()].instructions;
      for (std::size_t i = 0; i < instructions.size(); ++i) {
        const Instruction& instruction = instructions[i];
        const int number = static_cast<int>(own.size());
        Step step{static_cast<int>(a), static_cast<int>(i), instruction.stream.value,
                  plan.costs[0].by_segment[action.segment.index()][i].busy};
        if (rank == slow.rank && std::holds_alternative<Compute>(instruction.what)) step.length = step.length * slow.factor;
        if (newest.contains(step.stream)) step.local.push_back(newest[step.stream]);
        newest[step.stream] = number;
        for (const int earlier : instruction.after) step.local.push_back(base + earlier);
        for (const EventUse& wait : instruction.waits)
          if (const auto at = recorded.find({wait.event.value, slot(wait.slot, action)}); at != recorded.end())
            step.local.push_back(at->second);
        for (const EventUse& record : instruction.records) recorded[{record.event.value, slot(record.slot, action)}] = number;
        meet(rank, number, instruction, visits);
        own.push_back(std::move(step));
      }
    }
  }

  void meet(int rank, int number, const Instruction& instruction, std::map<int, int>& visits) {
    if (const auto* exchange = std::get_if<Exchange>(&instruction.what)) {
      if (exchange->to) sends[{rank, ranks.peer({rank}, *exchange->to).value, exchange->tag}].emplace_back(rank, number);
      if (exchange->from) receives[{ranks.peer({rank}, *exchange->from).value, rank, exchange->tag}].emplace_back(rank, number);
    } else if (const auto* collective = std::get_if<Collective>(&instruction.what)) {
      const int first = ranks.members(collective->group, RankId{rank}).front().value;
      gatherings[{collective->group.value, first, visits[collective->group.value]++}].emplace_back(rank, number);
    }
  }

  Step& at(std::pair<int, int> where) {
    return steps[static_cast<std::size_t>(where.first)][static_cast<std::size_t>(where.second)];
  }

  void match() {
    for (const auto& [channel, sent] : sends) {
      const auto& received = receives[channel];
      FS_ASSERT(sent.size() == received.size());
      for (std::size_t k = 0; k < sent.size(); ++k)
        at(sent[k]).with.push_back(received[k]), at(received[k]).with.push_back(sent[k]);
    }
    for (const auto& [key, members] : gatherings)
      for (const auto& member : members)
        for (const auto& other : members)
          if (member != other) at(member).with.push_back(other);
  }

  bool advance(std::vector<Step>& own, Step& step) {
    if (step.done) return false;
    if (!step.is_ready) {
      for (const int earlier : step.local)
        if (!own[static_cast<std::size_t>(earlier)].done) return false;
      for (const int earlier : step.local) step.ready = std::max(step.ready, own[static_cast<std::size_t>(earlier)].end);
      step.is_ready = true;
    }
    step.begin = step.ready;
    for (const auto& other : step.with) {
      if (!at(other).is_ready) return false;
      step.begin = std::max(step.begin, at(other).ready);
    }
    step.end = step.begin + step.length;
    return step.done = true;
  }

  void run() {
    steps.resize(static_cast<std::size_t>(ranks.count()));
    for (int rank = 0; rank < ranks.count(); ++rank) issue(rank);
    match();
    for (bool moved = true; moved;) {
      moved = false;
      for (auto& own : steps)
        for (Step& step : own) moved = advance(own, step) || moved;
    }
  }
};

}  // namespace

Trace play(const Plan& plan, Fold fold, const Slow& slow) {
  Player player{plan, slow};
  player.run();
  Trace trace;
  for (int rank = 0; rank < player.ranks.count(); ++rank) {
    const RoleId role = player.ranks.role({rank});
    for (const Step& step : player.steps[static_cast<std::size_t>(rank)]) {
      FS_ASSERT(step.done);
      trace.makespan = std::max(trace.makespan, step.end);
    }
    if (fold == Fold::Roles && player.ranks.first(role).value != rank) {
      trace.classes.back().members.push_back({rank});
      continue;
    }
    const ClassId who = {static_cast<std::int32_t>(trace.classes.size())};
    trace.classes.push_back({role, {{rank}}});
    for (const Step& step : player.steps[static_cast<std::size_t>(rank)])
      trace.spans.push_back({who, step.action, step.instruction, 1, {step.stream}, step.ready, step.begin, step.end});
  }
  std::stable_sort(trace.spans.begin(), trace.spans.end(), [](const Span& a, const Span& b) {
    return std::tuple(a.who, a.stream, a.begin) < std::tuple(b.who, b.stream, b.begin);
  });
  return trace;
}

Trace merged(const Trace& trace) {
  Trace out = trace;
  out.spans.clear();
  for (const Span& span : trace.spans) {
    Span* last = out.spans.empty() ? nullptr : &out.spans.back();
    if (last != nullptr && span.stream.value == 0 && last->who == span.who && last->stream == span.stream &&
        last->action == span.action && last->end == span.begin) {
      last->end = span.end;
      last->count += span.count;
    } else {
      out.spans.push_back(span);
    }
  }
  return out;
}

Nanoseconds idle_of(const Plan& plan, const Trace& trace, ClassId who) {
  // Marks every border and asks, for each stretch between two borders, whether some span covers it.
  std::vector<Span> spans;
  std::vector<Nanoseconds> borders = {{}, trace.makespan};
  for (const Span& span : trace.spans) {
    if (span.who != who) continue;
    if (plan.roles[trace.classes[who.index()].role.index()].streams[span.stream.index()].kind != StreamKind::Compute) continue;
    spans.push_back(span);
    borders.push_back(span.begin);
    borders.push_back(span.end);
  }
  std::sort(borders.begin(), borders.end());
  Nanoseconds idle = {};
  for (std::size_t b = 1; b < borders.size(); ++b) {
    const auto covers = [&](const Span& span) {
      return span.begin <= borders[b - 1] && span.end >= borders[b] && span.begin < span.end;
    };
    if (std::none_of(spans.begin(), spans.end(), covers)) idle += borders[b] - borders[b - 1];
  }
  return idle;
}

}  // namespace foreshard::played
