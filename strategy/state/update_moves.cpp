#include "strategy/state/update_moves.h"

#include <algorithm>
#include <utility>

namespace foreshard {

UpdateMoves::UpdateMoves(const ChunkFrame& frame, const ChunkState& state, const StateRow& row, bool kept)
    : frame_(frame), state_(state), processor_(kept ? Processor::Device : row.optimizer.updated_by) {
  static constexpr std::array kNames = {"update.gradients", "update.master", "update.momentum", "update.variance",
                                        "update.parameters"};
  const auto name = [&](const char* what) { return kept ? std::string("kept.") + what : std::string(what); };
  const auto mine = [&](const StateUnit& unit) { return !unit.frozen && unit.states_away != kept; };
  first_ = static_cast<int>(std::ranges::find_if(state.units, mine) - state.units.begin());
  for (std::size_t s = 0; s < kStates; ++s) {
    std::int64_t most = 0;
    const Buffer* home = nullptr;
    for (const StateUnit& unit : state.units) {
      const BufferId id = homes(unit)[s];
      if (unit.borrowed || !mine(unit) || !id.valid() || reaches(buffer(id).space)) continue;
      home = &buffer(id);
      const StateRow& of_unit = frame.lowering.tables.state[static_cast<std::size_t>(unit.row)];  // experts are cut over other ranks
      most = std::max(most, unit.elements / frame.lowering.ranks(of_unit.optimizer.cut_by));
    }
    if (!home) continue;
    const DType dtype = home->dtype;
    places_[s].buffer = frame.add_buffer(name(kNames[s]), home->category, dtype, size_of(dtype) * most, kPlaces);
    if (processor_ == Processor::Host) frame.role.buffers[places_[s].buffer.index()].space = Space::PinnedHost;
    places_[s].free = frame.add_event(name(kNames[s]) + "_free", kPlaces);
  }
  const auto is_there = [&](const StateUnit& unit) {
    return unit.gradient.valid() && buffer(unit.gradient).space != Space::Device;
  };
  if (processor_ == Processor::Host && frame.lowering.tables.update.clips() && std::ranges::any_of(state.units, is_there)) {
    const Buffer& norm = buffer(frame.lowering.norm);
    norm_ = frame.add_buffer("norm of gradients", Category::Gradients, norm.dtype, norm.bytes, 1);
    frame.role.buffers[norm_.index()].space = Space::PinnedHost, frame.role.buffers[norm_.index()].resident = true;
  }
  stored_ = frame.add_event(name("stored"), std::max(1, static_cast<int>(state.units.size())));
}

// A copy between a buffer at home, which may hold the parts of all ranks, and its place, which holds this rank's part.
Instruction UpdateMoves::copy(const Use& home, const Use& place, bool back, const UpdateStep& step) const {
  const Use &from = back ? place : home, &to = back ? home : place;
  const Space space = buffer(home.buffer).space;
  const bool drive = space == Space::Nvme, sliced = home.length.value_or(buffer(home.buffer).bytes) > *place.length;
  const bool out = drive ? back : buffer(to.buffer).space != Space::Device;
  return {.name = drive ? (out ? "to drive" : "from drive") : (out ? "to host" : "from host"),
          .what = Copy{.bytes = *place.length, .slice = sliced ? step.slice : GroupId{}},
          .stream = frame_.copy_way(space, out).stream,
          .reads = {from},
          .writes = {to}};
}

static bool touches(const std::vector<Use>& uses, BufferId buffer) {
  return std::ranges::any_of(uses, [&](const Use& use) { return use.buffer == buffer; });
}
// How the update uses a buffer at its home.
static Use use_of(const Instruction& run, BufferId buffer) {
  for (const auto* uses : {&run.reads, &run.writes})
    for (const Use& use : *uses)
      if (use.buffer == buffer) return use;
  return {.buffer = buffer};
}
static void move(std::vector<Use>& uses, BufferId home, const Use& place) {
  for (Use& use : uses)
    if (use.buffer == home) use = place;
}

void UpdateMoves::bring_norm(SegmentBuilder& out, int backward_done) {
  if (!norm_.valid()) return;
  out.emit({.name = "to host",
            .what = Copy{.bytes = buffer(norm_).bytes},
            .stream = frame_.copy_way(Space::PinnedHost, true).stream,
            .after = {backward_done},
            .reads = {{.buffer = frame_.lowering.norm}},
            .writes = {{.buffer = norm_}}});
}

void UpdateMoves::add(SegmentBuilder& out, int index, UpdateStep step, int backward_done) {
  const std::array<BufferId, kStates> home = homes(state_.units[static_cast<std::size_t>(index)]);
  std::vector<Instruction> back;
  std::vector<std::pair<Block, EventId>> taken;
  Instruction& run = step.run;
  on_processor(run);
  if (step.clip) on_processor(*step.clip);
  if (step.clip && norm_.valid()) step.clip->reads = {{.buffer = norm_}};
  const std::vector<EventUse> gradients_summed = run.waits;
  // At the end of the run, where updates between the backwards, in another segment, have used the places.
  const bool behind_backwards = backward_done >= 0 && frame_.lowering.tables.state.back().optimizer.with_backward;
  for (std::size_t s = 0; s < kStates; ++s) {
    const Places& places = places_[s];
    if (!places.buffer.valid() || !home[s].valid() || reaches(buffer(home[s]).space)) continue;
    const bool read = touches(run.reads, home[s]), written = touches(run.writes, home[s]);
    const bool state = buffer(home[s]).category == Category::Optimizer;
    const Block block{places.buffer, {index % kPlaces}};
    const Use place{.buffer = block.buffer, .slot = block.slot, .length = size_of(buffer(home[s]).dtype) * step.elements};
    const Use at_home = use_of(run, home[s]);
    move(run.reads, home[s], place), move(run.writes, home[s], place);
    if (step.clip) move(step.clip->writes, home[s], place);
    Instruction there = copy(at_home, place, false, step);
    if (s == 0) there.waits = std::exchange(run.waits, {});
    if (s == 0 && there.waits.empty() && backward_done >= 0) there.after = {backward_done};
    if (s == 0 && step.gradients_taken) there.records.push_back(*step.gradients_taken);
    if (state) there.waits.push_back({stored_, {index}});
    // Parameters that the last run gathered: the backward, whose gradients are summed, has read them.
    if (!state && s > 0 && backward_done < 0) there.waits = gradients_summed;
    Instruction& first = read ? there : run;
    first.acquires.push_back(block);
    if (index < first_ + kPlaces || behind_backwards) first.waits.push_back({places.free, block.slot});
    if (read) out.emit(std::move(there));
    taken.emplace_back(block, places.free);
    if (!written) continue;
    back.push_back(copy(at_home, place, true, step));
    if (!state && backward_done >= 0) back.back().after = {backward_done};
    if (!state) back.back().records = std::exchange(run.records, {});
    if (state) back.back().records = {{stored_, {index}}};
  }
  if (step.clip) {
    step.clip->waits = std::exchange(run.waits, {});
    out.emit(std::move(*step.clip));
  }
  out.emit(std::move(run));
  for (Instruction& copy : back) out.emit(std::move(copy));
  for (const auto& [block, free] : taken) {
    out.record_after_last_use(block, {free, block.slot});
    out.release(block);
  }
}

void UpdateMoves::on_processor(Instruction& run) const {
  if (processor_ == Processor::Device) return;
  const auto& what = std::get<Compute>(run.what);
  run.what = HostCompute{.op = what.op, .traffic = what.traffic, .shapes = what.shapes};
  run.stream = frame_.way(Purpose::HostUpdate).stream;
}

}  // namespace foreshard
