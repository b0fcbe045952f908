#include "exec/data/rank_states.h"

#include <algorithm>

#include "core/op/operation.h"
#include "exec/arithmetic/host_convert.h"

namespace foreshard {

namespace {

constexpr const char* kPrefix = "rank ";

// [buffer of the role]: 1 if it is resident and an Encode writes it.
std::vector<char> written_by_encodes(const Plan& plan, const Role& role) {
  std::vector<char> states(role.buffers.size());
  for (const Action& action : role.actions)
    for (const Instruction& run : plan.segments[action.segment.index()].instructions) {
      const auto* compute = std::get_if<Compute>(&run.what);
      if (!compute || !is<ops::Encode>(compute->op)) continue;
      for (const Use& use : run.writes)
        if (role.buffers[use.buffer.index()].resident) states[use.buffer.index()] = 1;
    }
  return states;
}

bool holds_gradients(const Buffer& buffer) {
  return std::ranges::any_of(buffer.holds, [](const Shard& shard) { return shard.part == TensorPart::Gradient; });
}

}  // namespace

std::vector<RankState> rank_states(const Plan& plan, const Ranks& ranks) {
  std::vector<RankState> all;
  std::vector<std::vector<char>> states;
  for (const Role& role : plan.roles) states.push_back(written_by_encodes(plan, role));
  for (std::int32_t rank = 0; rank < ranks.count(); ++rank) {
    const std::size_t role = ranks.role({rank}).index();
    for (std::size_t b = 0; b < states[role].size(); ++b) {
      if (!states[role][b]) continue;
      const Buffer& buffer = plan.roles[role].buffers[b];
      all.push_back({.rank = {rank},
                     .buffer = {static_cast<std::int32_t>(b)},
                     .dtype = buffer.dtype,
                     .elements = buffer.bytes.value / size_of(buffer.dtype).value,
                     .name = kPrefix + std::to_string(rank) + ": " + buffer.name});
    }
  }
  return all;
}

bool names_rank_state(const std::string& name) { return name.starts_with(kPrefix); }

std::string layout_of_rank_states(const Plan& plan) {
  Plan layout{.axes = plan.axes, .tensors = plan.tensors, .placement = plan.placement};
  bool any = false;
  for (const Role& role : plan.roles) {
    const std::vector<char> states = written_by_encodes(plan, role);
    Role& lies = layout.roles.emplace_back();
    lies.name = role.name, lies.axes = role.axes;
    for (std::size_t b = 0; b < role.buffers.size(); ++b) {
      if (!states[b] && !holds_gradients(role.buffers[b])) continue;
      any = any || states[b];
      lies.buffers.push_back(role.buffers[b]);
      lies.buffers.back().offsets.assign(1, Bytes{});
    }
  }
  return any ? program_hash(layout) : "";
}

WholeTensor read_state(const std::vector<const RankMemory*>& memories, const RankState& state) {
  const auto size = static_cast<std::size_t>(state.elements);
  WholeTensor own{.elements = std::vector<double>(size), .held = std::vector<char>(size)};
  const RankMemory* memory = memories[state.rank.index()];
  if (!memory) return own;
  std::vector<std::byte> stored = memory->read(state.buffer, {}, size_of(state.dtype) * state.elements);
  host::load({stored.data(), state.elements, state.dtype}, 0, state.elements, own.elements.data());
  std::ranges::fill(own.held, char{1});
  return own;
}

void write_state(const std::vector<const RankMemory*>& memories, const RankState& state, const std::vector<double>& elements) {
  const RankMemory* memory = memories[state.rank.index()];
  if (!memory) return;
  std::vector<std::byte> stored(static_cast<std::size_t>((size_of(state.dtype) * state.elements).value));
  host::store(elements.data(), state.elements, {stored.data(), state.elements, state.dtype}, 0);
  memory->write(state.buffer, {}, stored);
}

}  // namespace foreshard
