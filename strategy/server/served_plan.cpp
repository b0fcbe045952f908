#include "strategy/server/served_plan.h"

#include <algorithm>
#include <string>

#include "core/base/at.h"
#include "core/base/error.h"

namespace foreshard {

namespace {

constexpr StreamId kCompute = {0};

void add_events(const std::vector<Instruction>& runs, std::set<EventId>& waits, std::set<EventId>& records) {
  for (const Instruction& run : runs) {
    for (const EventUse& event : run.waits) waits.insert(event.event);
    for (const EventUse& event : run.records) records.insert(event.event);
  }
}

bool is_mark(const Instruction& run) { return std::holds_alternative<Mark>(run.what); }

// Sends a block to the peer, or receives it.
Instruction exchange(const std::string& name, const Peer& peer, BufferId buffer, Bytes bytes, bool sends) {
  Instruction run{.name = name, .what = Exchange{.tag = name, .bytes = bytes}, .stream = kCompute};
  auto& what = std::get<Exchange>(run.what);
  (sends ? what.to : what.from) = peer;
  (sends ? run.reads : run.writes) = {{.buffer = buffer}};
  return run;
}

// Of the streams on which a stage meets its servers: the compute stream for the first one, one behind those of the role for each other.
StreamId stream_of(std::size_t position, std::size_t streams) {
  return position == 0 ? kCompute : StreamId{static_cast<std::int32_t>(streams + position - 1)};
}

// The computes of worker `worker`: of micro-batches behind those of the workers before it.
Action of_worker(Action action, const Plan& plan, int worker, int microbatches) {
  const std::vector<Param>& params = plan.segments[action.segment.index()].params;
  for (std::size_t p = 0; p < params.size(); ++p)
    if (params[p].kind == ParamKind::Microbatch) action.args[p] += worker * microbatches;
  for (Does& does : action.does) does.microbatch += worker * microbatches;
  return action;
}

}  // namespace

ServedPlan::ServedPlan(const Plan& one, int workers, ServerUnits units, const std::optional<Coding>& coding)
    : one_(one), out_(one), units_(std::move(units)), coding_(coding), workers_(workers) {
  out_.roles.clear(), out_.segments.clear(), out_.costs.clear();
  out_.samples *= workers, out_.microbatches *= workers, out_.updates = workers;
  for (int stage = 0; stage < stages(); ++stage) of_.push_back(stage_of(stage));
}

bool ServedPlan::complete() const {
  for (int stage = 0; stage < stages(); ++stage) {
    const Stage& of = of_[at(stage)];
    std::set<EventId> waits, records = of.records;
    for (const Action& action : one_.roles[at(stage)].actions)
      if (!trains(action)) add_events(one_.segments[action.segment.index()].instructions, waits, records);
    if (!std::ranges::includes(of.records, of.waits) || !std::ranges::includes(records, waits)) return false;
  }
  return true;
}

// The buffers of a category that the stage and the server exchange. A second copy's gradients are not sent.
std::vector<std::size_t> ServedPlan::exchanged(int stage, int server, Category category) const {
  std::vector<std::size_t> all;
  for (std::size_t b = 0; b < units_.of[at(stage)].size(); ++b) {
    const ServedBuffer& of = served(stage, b);
    if (of.server == server && buffer(stage, b).category == category &&
        (of.original_role < 0 || category == Category::Parameters))
      all.push_back(b);
  }
  return all;
}

ServedPlan::Sums ServedPlan::sums_of(int stage) const {
  Sums sums;
  for (const Action& action : one_.roles[at(stage)].actions) {
    const std::vector<Instruction>& runs = one_.segments[action.segment.index()].instructions;
    const auto sum = [](const Instruction& run) { return !is_update(run) && !is_mark(run); };
    if (trains(action) || std::ranges::none_of(runs, sum)) continue;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (is_update(runs[i])) continue;
      Instruction run = runs[i];
      run.after.clear();
      for (const std::int32_t before : runs[i].after)
        if (const auto known = sums.at.find({action.segment.value, before}); known != sums.at.end())
          run.after.push_back(known->second);
      sums.at[{action.segment.value, static_cast<std::int32_t>(i)}] = static_cast<std::int32_t>(sums.runs.size());
      sums.runs.push_back(std::move(run));
    }
  }
  return sums;
}

ServedPlan::Stage ServedPlan::stage_of(int index) {
  const Role& role = one_.roles[at(index)];
  Stage stage{.taken = TakenRole(one_, {index})};
  std::vector<char> used(role.buffers.size());
  for (std::size_t b = 0; b < used.size(); ++b) used[b] = is_exchanged(role.buffers[b]) ? 1 : 0;
  const auto use = [&](const std::vector<Instruction>& runs) {
    for (const Instruction& run : runs) each_buffer(run, [&](const BufferId& id) { used[id.index()] = 1; });
    add_events(runs, stage.waits, stage.records);
  };
  for (const Action& action : role.actions)
    if (trains(action)) use(one_.segments[action.segment.index()].instructions);
  use(sums_of(index).runs);
  stage.taken.take_buffers(index, [&](std::size_t b) { return used[b] != 0; });
  for (const Action& action : role.actions) {
    if (!trains(action)) continue;
    stage.actions.push_back(action);
    stage.actions.back().segment = taken_segment(stage.taken, index, action.segment);
  }
  for (int server = 0; server < units_.servers; ++server) {
    if (!exchanged(index, server, Category::Parameters).empty()) stage.servers.push_back(server);
    for (const std::size_t b : exchanged(index, server, Category::Gradients))
      if (coding_ && CodedPush::codes(one_, buffer(index, b)))
        stage.codes.emplace(b, CodedPush(*coding_, buffer(index, b), stage.taken.role, true));
  }
  return stage;
}

SegmentId ServedPlan::add(Segment segment) {
  out_.segments.push_back(std::move(segment));
  return {static_cast<std::int32_t>(out_.segments.size()) - 1};
}

SegmentId ServedPlan::taken_segment(const TakenRole& taken, int stage, SegmentId id) {
  const auto [known, fresh] = segments_.try_emplace({stage, id});
  if (!fresh) return known->second;
  Segment copy = one_.segments[id.index()];
  for (Instruction& run : copy.instructions) run = taken.moved(stage, std::move(run));
  return known->second = add(std::move(copy));
}

// A group of ranks of one role is every worker's; one over stages is made for each worker.
GroupId ServedPlan::group_of(int worker, GroupId group) {
  if (one_.groups[group.index()].roles.empty()) return group;
  const auto [known, fresh] = groups_.try_emplace({worker, group}, group);
  if (!fresh) return known->second;
  Group own = one_.groups[group.index()];
  for (RoleId& role : own.roles) role = {role_of(worker, role.value)};
  if (worker == 0) return out_.groups[group.index()] = std::move(own), group;
  own.name += ", worker " + std::to_string(worker);
  out_.groups.push_back(std::move(own));
  return known->second = {static_cast<std::int32_t>(out_.groups.size()) - 1};
}

// Makes `run`, which sends a gradient, wait for what the update of the worker's plan that reads it waits for.
void ServedPlan::wait_as_update(Instruction& run, int stage, BufferId gradient, const Sums& sums) const {
  const auto reads = [&](const Instruction& update) {
    return is_update(update) && std::ranges::find(update.reads, gradient, &Use::buffer) != update.reads.end();
  };
  for (const Action& action : one_.roles[at(stage)].actions) {
    const std::vector<Instruction>& runs = one_.segments[action.segment.index()].instructions;
    const auto update = std::ranges::find_if(runs, reads);
    if (trains(action) || update == runs.end()) continue;
    for (const EventUse& event : update->waits)
      if (of_[at(stage)].records.contains(event.event)) run.waits.push_back(event);
    for (const std::int32_t before : update->after)
      if (const auto known = sums.at.find({action.segment.value, before});
          known != sums.at.end() && sums.runs[at(known->second)].stream != run.stream)
        run.after.push_back(known->second);
    return;
  }
}

void ServedPlan::push_gradient(std::vector<Instruction>& runs, int stage, std::size_t gradient, const Peer& peer,
                               StreamId stream, const Sums& sums) const {
  const Stage& of = of_[at(stage)];
  const BufferId id{static_cast<std::int32_t>(gradient)};
  const auto codes = of.codes.find(gradient);
  if (codes == of.codes.end()) {
    Instruction run = exchange("push", peer, of.taken.buffer(stage, id), buffer(stage, gradient).bytes, true);
    run.stream = stream;
    wait_as_update(run, stage, id, sums);
    runs.push_back(std::move(run));
    return;
  }
  Instruction encode = codes->second.encode(of.taken.buffer(stage, id));
  wait_as_update(encode, stage, id, sums);
  runs.push_back(std::move(encode));
  Instruction run = exchange("push", peer, codes->second.codes(), codes->second.bytes(), true);
  run.stream = stream;
  if (stream != kCompute) run.after.push_back(static_cast<std::int32_t>(runs.size()) - 1);
  run.releases = {{codes->second.codes()}};
  runs.push_back(std::move(run));
}

// One server after the other, since all pushes leave by the same card; so the first one updates while the others receive.
Segment ServedPlan::push_of(int worker, int stage) {
  const Stage& of = of_[at(stage)];
  const Sums sums = sums_of(stage);
  Segment push{.name = "push"};
  for (Instruction run : sums.runs) {
    if (auto* what = std::get_if<Collective>(&run.what)) what->group = group_of(worker, what->group);
    push.instructions.push_back(of.taken.moved(stage, std::move(run)));
  }
  Instruction kept{.name = "sums done", .what = Mark{}, .stream = kCompute};  // of gradients that are not sent
  for (std::size_t b = 0; b < units_.of[at(stage)].size(); ++b)
    if (served(stage, b).server < 0 && buffer(stage, b).category == Category::Gradients)
      wait_as_update(kept, stage, {static_cast<std::int32_t>(b)}, sums);
  if (!kept.waits.empty() || !kept.after.empty()) push.instructions.push_back(std::move(kept));
  for (std::size_t s = 0; s < of.servers.size(); ++s) {
    const Peer peer{.role_shift = of.servers[s] - role_of(worker, stage)};
    bool first = s > 0;
    const std::vector<std::size_t> gradients = exchanged(stage, of.servers[s], Category::Gradients);
    if (first && gradients.empty())  // it only pulls a second copy, behind what trains
      push.instructions.push_back({.name = "nothing to push",
                                   .what = Mark{},
                                   .stream = stream_of(s, of.taken.role.streams.size()),
                                   .after = {static_cast<std::int32_t>(push.instructions.size()) - 1}});
    for (const std::size_t b : gradients) {
      const std::size_t before = push.instructions.size();
      push_gradient(push.instructions, stage, b, peer, stream_of(s, of.taken.role.streams.size()), sums);
      if (std::exchange(first, false)) push.instructions.back().after.push_back(static_cast<std::int32_t>(before) - 1);
    }
  }
  return push;
}

Segment ServedPlan::pull_of(int worker, int stage) const {
  const Stage& of = of_[at(stage)];
  Segment pull{.name = "pull"};
  for (std::size_t s = 0; s < of.servers.size(); ++s) {
    const Peer peer{.role_shift = of.servers[s] - role_of(worker, stage)};
    for (const std::size_t b : exchanged(stage, of.servers[s], Category::Parameters)) {
      Instruction run =
          exchange("pull", peer, of.taken.buffer(stage, {static_cast<std::int32_t>(b)}), buffer(stage, b).bytes, false);
      run.stream = stream_of(s, of.taken.role.streams.size());
      pull.instructions.push_back(std::move(run));
    }
    if (s > 0)
      pull.instructions.back().records.push_back(
          {{static_cast<std::int32_t>(of.taken.role.events.size())}, {static_cast<std::int32_t>(s) - 1}});
  }
  return pull;
}

Role ServedPlan::worker(int worker, int stage) {
  const Stage& of = of_[at(stage)];
  Role role = of.taken.role;
  role.name = "worker " + std::to_string(worker) + (stages() > 1 ? ", " + one_.roles[at(stage)].name : "");
  if (of.servers.size() > 1) {  // what trains next waits for the servers on other streams
    const auto others = static_cast<std::int32_t>(of.servers.size()) - 1;
    Instruction begin{.name = "parameters pulled", .what = Mark{}, .stream = kCompute};
    for (std::int32_t slot = 0; slot < others; ++slot)
      begin.waits.push_back({{static_cast<std::int32_t>(role.events.size())}, {slot}});
    role.events.push_back({.name = "pulled", .slots = others});
    for (std::int32_t slot = 0; slot < others; ++slot)
      role.streams.push_back({.name = "server " + std::to_string(of.servers[at(slot + 1)]), .kind = StreamKind::Communication});
    role.actions.push_back({.segment = add({.name = "begin", .instructions = {std::move(begin)}})});
  }
  for (const Action& action : of.actions) role.actions.push_back(of_worker(action, out_, worker, one_.microbatches));
  role.actions.push_back({.segment = add(push_of(worker, stage))});
  role.actions.push_back({.segment = add(pull_of(worker, stage))});
  return role;
}

// The actions of an update of what the server holds, as often as there are stages and chunks of them.
std::vector<Action> ServedPlan::updates_of(int server, const std::vector<int>& holds, const TakenRole& taken) {
  std::vector<Action> actions;
  for (const int stage : holds)
    for (const Action& action : one_.roles[at(stage)].actions) {
      if (trains(action)) continue;
      const Segment& from = one_.segments[action.segment.index()];
      Segment segment{.name = from.name, .params = from.params};
      std::vector<std::int32_t> place(from.instructions.size(), -1);
      bool updates = false;
      for (std::size_t i = 0; i < from.instructions.size(); ++i) {
        Instruction run = from.instructions[i];
        bool held = is_mark(run) || is_update(run);
        each_buffer(run, [&](const BufferId& id) { held &= served(stage, id.index()).server == server; });
        each_buffer(run, [&](const BufferId& id) { held &= served(stage, id.index()).original_role < 0; });
        if (!held) continue;
        updates |= is_update(run);
        std::erase_if(run.waits, [&](const EventUse& event) { return of_[at(stage)].records.contains(event.event); });
        std::vector<std::int32_t> after;
        for (const std::int32_t before : run.after)
          if (place[at(before)] >= 0) after.push_back(place[at(before)]);
        run.after = std::move(after);
        place[i] = static_cast<std::int32_t>(segment.instructions.size());
        segment.instructions.push_back(taken.moved(stage, std::move(run)));
      }
      if (!updates) continue;
      actions.push_back(action);
      actions.back().segment = add(std::move(segment));
    }
  return actions;
}

Role ServedPlan::server(int index) {
  std::vector<int> holds;  // the stages of which it holds something
  for (int stage = 0; stage < stages(); ++stage)
    if (std::ranges::any_of(units_.of[at(stage)],
                            [&](const ServedBuffer& b) { return b.server == index && b.original_role < 0; }))
      holds.push_back(stage);
  TakenRole taken(one_, holds);
  for (const int stage : holds)
    taken.take_buffers(stage,
                       [&](std::size_t b) { return served(stage, b).server == index && served(stage, b).original_role < 0; });
  std::map<std::pair<int, std::size_t>, CodedPush> codes;  // [stage, buffer]
  for (const int stage : holds)
    for (const auto& [b, push] : of_[at(stage)].codes)
      if (served(stage, b).server == index)
        codes.emplace(std::pair{stage, b}, CodedPush(*coding_, buffer(stage, b), taken.role, false));
  Role role = taken.role;
  role.name = units_.servers > 1 ? "server " + std::to_string(index) : "server";
  const std::vector<Action> updates = updates_of(index, holds, taken);
  for (int worker = 0; worker < workers_; ++worker) {
    Segment push{.name = "push"}, pull{.name = "pull"};
    for (int stage = 0; stage < stages(); ++stage) {
      const Peer peer{.role_shift = role_of(worker, stage) - index};
      for (const std::size_t b : exchanged(stage, index, Category::Gradients)) {
        const BufferId gradient = taken.buffer(stage, {static_cast<std::int32_t>(b)});
        const auto coded = codes.find({stage, b});
        if (coded == codes.end()) {
          push.instructions.push_back(exchange("push", peer, gradient, buffer(stage, b).bytes, false));
          continue;
        }
        push.instructions.push_back(exchange("push", peer, coded->second.codes(), coded->second.bytes(), false));
        push.instructions.back().acquires = {{coded->second.codes()}};
        push.instructions.push_back(coded->second.decode(gradient));
      }
      for (const std::size_t b : exchanged(stage, index, Category::Parameters)) {
        const ServedBuffer& of = served(stage, b);
        const bool copy = of.original_role >= 0;
        const BufferId held =
            copy ? taken.buffer(of.original_role, of.original) : taken.buffer(stage, {static_cast<std::int32_t>(b)});
        pull.instructions.push_back(exchange("pull", peer, held, buffer(stage, b).bytes, true));
      }
    }
    role.actions.push_back({.segment = add(std::move(push))});
    for (Action action : updates) {
      for (Does& does : action.does) does.version = worker + 1;
      role.actions.push_back(std::move(action));
    }
    role.actions.push_back({.segment = add(std::move(pull))});
  }
  return role;
}

Plan ServedPlan::take() {
  for (int index = 0; index < units_.servers; ++index) out_.roles.push_back(server(index));
  for (int index = 0; index < workers_; ++index)
    for (int stage = 0; stage < stages(); ++stage) out_.roles.push_back(worker(index, stage));
  return std::move(out_);
}

}  // namespace foreshard
