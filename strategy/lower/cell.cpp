#include "strategy/lower/cell.h"

#include <map>
#include <set>
#include <utility>

#include "core/base/error.h"
#include "strategy/program/chunk_frame.h"

namespace foreshard {

namespace {

void shift(Slot& slot, std::int32_t by) {
  if (auto* param = std::get_if<ParamId>(&slot.which)) param->value += by;
}

// The same instructions with parameters from `by` on.
Segment with_later_params(Segment segment, std::int32_t by) {
  for (Instruction& run : segment.instructions) {
    if (auto* what = std::get_if<Compute>(&run.what); what && what->microbatch) what->microbatch->value += by;
    for (auto* events : {&run.waits, &run.records})
      for (EventUse& event : *events) shift(event.slot, by);
    for (auto* uses : {&run.reads, &run.writes})
      for (Use& use : *uses) shift(use.slot, by);
    for (auto* blocks : {&run.acquires, &run.releases})
      for (Block& block : *blocks) shift(block.slot, by);
  }
  return segment;
}

void add_params(Segment& to, const std::vector<Param>& more, const char* prefix) {
  for (const Param& param : more) to.params.push_back({prefix + param.name, param.kind});
}

using Place = std::pair<std::int32_t, std::int32_t>;  // buffer, fixed slot

std::set<Place> fixed(const Segment& segment, std::vector<Block> Instruction::*blocks) {
  std::set<Place> places;
  for (const Instruction& run : segment.instructions)
    for (const Block& block : run.*blocks)
      if (const auto* slot = std::get_if<std::int32_t>(&block.slot.which)) places.emplace(block.buffer.value, *slot);
  return places;
}

// Scratch of `b` that `a` has too gets buffers of its own.
void part_scratch(const Segment& a, Segment& b, Role& role) {
  const std::set<Place> of_a = fixed(a, &Instruction::acquires), taken = fixed(b, &Instruction::acquires);
  const std::set<Place> given = fixed(b, &Instruction::releases);
  std::map<std::int32_t, BufferId> own;
  for (const Place& place : taken)
    if (of_a.contains(place) && given.contains(place) && !own.contains(place.first)) {
      Buffer copy = role.buffers[static_cast<std::size_t>(place.first)];
      copy.name += ", beside a forward";
      own[place.first] = {static_cast<std::int32_t>(role.buffers.size())};
      role.buffers.push_back(std::move(copy));
    }
  const auto rename = [&](BufferId& buffer) {
    if (const auto found = own.find(buffer.value); found != own.end()) buffer = found->second;
  };
  for (Instruction& run : b.instructions) {
    for (auto* uses : {&run.reads, &run.writes})
      for (Use& use : *uses) rename(use.buffer);
    for (auto* blocks : {&run.acquires, &run.releases})
      for (Block& block : *blocks) rename(block.buffer);
  }
}

// Takes the instructions of both in an order that keeps that of each.
class Turns {
 public:
  Turns(const Segment& a, const Segment& b, StreamId communication, bool delayed)
      : of_{&a, &b}, communication_(communication), delayed_(delayed) {}

  std::vector<Instruction> take() {
    for (int turn = 0; left(0) || left(1); turn = 1 - turn) go(turn);
    return std::move(all_);
  }

 private:
  bool left(int which) const { return next_[which] < of_[which]->instructions.size(); }
  const Instruction& next(int which) const { return of_[which]->instructions[next_[which]]; }
  // A weight gradient, or its sum, that runs beside the communication before it.
  bool is_delayed(const Instruction& run) const {
    const auto* what = std::get_if<Compute>(&run.what);
    const bool elsewhere = run.stream != kComputeStream && run.stream != communication_;
    return delayed_ && (elsewhere || (what && what->phase == Phase::WeightGrad));
  }
  void go(int which) {
    for (bool communicated = false; left(which);) {
      if (communicated && left(1 - which) && !is_delayed(next(which))) return;
      Instruction run = of_[which]->instructions[next_[which]++];
      for (std::int32_t& before : run.after) before = place_[which][static_cast<std::size_t>(before)];
      place_[which].push_back(static_cast<std::int32_t>(all_.size()));
      communicated |= run.stream == communication_ &&
                      (std::holds_alternative<Collective>(run.what) || std::holds_alternative<Exchange>(run.what));
      all_.push_back(std::move(run));
    }
  }

  const Segment* of_[2];
  StreamId communication_;
  bool delayed_;
  std::size_t next_[2] = {};
  std::vector<std::int32_t> place_[2] = {};  // of each instruction among all
  std::vector<Instruction> all_ = {};
};

}  // namespace

Segment joined(const Segment& a, const Segment& b) {
  Segment all = a;
  all.name += " + " + b.name;
  add_params(all, b.params, "");
  const auto before = static_cast<std::int32_t>(a.instructions.size());
  for (Instruction& run : with_later_params(b, static_cast<std::int32_t>(a.params.size())).instructions) {
    for (std::int32_t& index : run.after) index += before;
    all.instructions.push_back(std::move(run));
  }
  return all;
}

Segment in_turns(const Segment& a, const Segment& b, StreamId communication, bool delayed, Role& role) {
  Segment second = with_later_params(b, static_cast<std::int32_t>(a.params.size()));
  part_scratch(a, second, role);
  Segment all{.name = a.name + " & " + b.name, .params = a.params};
  add_params(all, b.params, "backward.");
  all.instructions = Turns(a, second, communication, delayed).take();
  return all;
}

}  // namespace foreshard
