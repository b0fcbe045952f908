#include "exec/rank/rank_memory.h"

#include <algorithm>

#include "core/base/error.h"

namespace foreshard {

namespace {

constexpr Bytes kGuard{256};
constexpr std::byte kGuardByte{0xA5}, kPoison{0xFF};
constexpr Space kSpaces[] = {Space::Device, Space::PinnedHost, Space::PageableHost, Space::Nvme};

}  // namespace

RankMemory::RankMemory(const Plan& plan, RoleId role, DeviceBackend& device, const MemoryChecks& checks)
    : role_(plan.roles[role.index()]), device_(device), checks_(checks) {
  if (checks.poison && !device.fills_in_steps())
    throw Error("options", "poison", "a device whose memory is not filled during a step", "a run without it");
  for (std::size_t b = 0; b < role_.buffers.size(); ++b) {
    const Buffer& buffer = role_.buffers[b];
    const std::string where = "roles[" + std::to_string(role.value) + "].buffers[" + std::to_string(b) + "]";
    if (buffer.scope == Scope::Device) throw Error("plan", where, "a buffer shared by the ranks of a device", "one per rank");
    first_block_.push_back(static_cast<int>(blocks_.size()));
    for (std::size_t slot = 0; slot < buffer.offsets.size(); ++slot)
      blocks_.push_back(
          {.buffer = {static_cast<std::int32_t>(b)}, .slot = static_cast<std::int32_t>(slot), .alive = buffer.resident});
  }
  lay_out();
  find_lives(plan);
  for (const Place& place : blocks_)
    if (place.alive) count(place, 1);
  between_runs_ = live_;
}

void RankMemory::lay_out() {
  for (const Space space : kSpaces) {
    Bytes size = arena_bytes(role_, space), next = kGuard;
    if (checks_.guards) {
      size = kGuard;
      for (const Place& place : blocks_)
        if (const Buffer& buffer = role_.buffers[place.buffer.index()]; buffer.space == space)
          size += Bytes{round_up(buffer.bytes.value, kGuard.value)} + kGuard;
    }
    const bool used =
        std::any_of(role_.buffers.begin(), role_.buffers.end(), [&](const Buffer& b) { return b.space == space; });
    if (!used) continue;
    std::byte* base = device_.arena(space, size);
    arenas_.emplace_back(space, size);
    if (checks_.guards) device_.fill(base, kGuardByte, size);
    for (Place& place : blocks_) {
      const Buffer& buffer = role_.buffers[place.buffer.index()];
      if (buffer.space != space) continue;
      const Bytes offset = checks_.guards ? next : buffer.offsets[static_cast<std::size_t>(place.slot)];
      place.data = base + offset.value;
      next += Bytes{round_up(buffer.bytes.value, kGuard.value)} + kGuard;
      if (checks_.guards) fill(place, std::byte{0});
    }
  }
}

// A block is alive at the start of a run if the program releases it before it acquires it.
void RankMemory::find_lives(const Plan& plan) {
  std::vector<char> seen(blocks_.size(), 0);
  for (const Action& action : role_.actions)
    for (const Instruction& instruction : plan.segments[action.segment.index()].instructions) {
      for (const Block& b : instruction.acquires) seen[static_cast<std::size_t>(block(b.buffer, value_of(b.slot, action)))] = 1;
      for (const Block& b : instruction.releases) {
        const auto at = static_cast<std::size_t>(block(b.buffer, value_of(b.slot, action)));
        if (!seen[at]) blocks_[at].alive = true;
        seen[at] = 1;
      }
    }
  // A block that is never acquired or released has no memory of its own; its offset is meaningless.
  if (checks_.poison)
    for (std::size_t at = 0; at < blocks_.size(); ++at)
      if (seen[at] && !blocks_[at].alive) fill(blocks_[at], kPoison);
}

void RankMemory::fill(const Place& place, std::byte with) const {
  const Bytes bytes = role_.buffers[place.buffer.index()].bytes;
  if (bytes.value > 0) device_.fill(place.data, with, bytes);
}

std::vector<std::byte> RankMemory::read(BufferId buffer, Bytes at, Bytes bytes) const {
  std::vector<std::byte> values(static_cast<std::size_t>(bytes.value));
  device_.read(values.data(), address(buffer) + at.value, bytes);
  return values;
}

void RankMemory::write(BufferId id, Bytes at, std::span<const std::byte> bytes) const {
  const Buffer& buffer = role_.buffers[id.index()];
  const std::int32_t slots = buffer.resident ? static_cast<std::int32_t>(buffer.offsets.size()) : 1;
  for (std::int32_t slot = 0; slot < slots; ++slot)
    device_.write(address(block(id, slot)) + at.value, bytes.data(), {static_cast<std::int64_t>(bytes.size())});
}

Operand RankMemory::operand(const Use& use, std::int32_t slot, const std::string& where) const {
  const Buffer& buffer = role_.buffers[use.buffer.index()];
  const Bytes length = use.length.value_or(buffer.bytes - use.from);
  const std::int64_t each = size_of(buffer.dtype).value;
  if (use.from.value < 0 || length.value < 0 || use.from + length > buffer.bytes || use.from.value % each != 0)
    throw Error("plan", where,
                "bytes " + std::to_string(use.from.value) + " to " + std::to_string((use.from + length).value) + " of \"" +
                    buffer.name + "\"",
                "whole elements of its " + std::to_string(buffer.bytes.value) + " bytes");
  return {.data = address(block(use.buffer, slot)) + use.from.value, .elements = length.value / each, .dtype = buffer.dtype};
}

void RankMemory::count(const Place& place, int sign) {
  const Buffer& buffer = role_.buffers[place.buffer.index()];
  if (buffer.space == Space::Device) live_[static_cast<std::size_t>(buffer.category)] += buffer.bytes * sign;
}

void RankMemory::acquire(const std::vector<int>& blocks) { set_alive(blocks, true); }
void RankMemory::release(const std::vector<int>& blocks) { set_alive(blocks, false); }

void RankMemory::set_alive(const std::vector<int>& blocks, bool alive) {
  if (blocks.empty()) return;
  if (checks_.poison)
    for (const int block : blocks) fill(blocks_[static_cast<std::size_t>(block)], kPoison);
  const std::lock_guard lock(mutex_);
  for (const int block : blocks) {
    Place& place = blocks_[static_cast<std::size_t>(block)];
    if (place.alive == alive)
      throw DeviceError(
          (alive ? "acquire of \"" : "release of \"") + buffer(block).name + "\" slot " + std::to_string(place.slot),
          alive ? "it is alive already" : "it is not alive");
    place.alive = alive;
    count(place, alive ? 1 : -1);
  }
}

LiveBytes RankMemory::live() const {
  const std::lock_guard lock(mutex_);
  return live_;
}

Bytes RankMemory::arena(Space space) const {
  for (const auto& [known, bytes] : arenas_)
    if (known == space) return bytes;
  return {};
}

std::string RankMemory::broken_guard() const {
  if (!checks_.guards) return {};
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    const Buffer& buffer = role_.buffers[blocks_[b].buffer.index()];
    const auto whole = [&](const std::byte* from, std::int64_t bytes) {
      std::vector<std::byte> guard(static_cast<std::size_t>(bytes));
      device_.read(guard.data(), from, {bytes});
      return std::all_of(guard.begin(), guard.end(), [](std::byte byte) { return byte == kGuardByte; });
    };
    const std::int64_t used = buffer.bytes.value, place = round_up(used, kGuard.value);
    if (!whole(blocks_[b].data - kGuard.value, kGuard.value) || !whole(blocks_[b].data + used, place - used + kGuard.value))
      return "\"" + buffer.name + "\" slot " + std::to_string(blocks_[b].slot);
  }
  return {};
}

}  // namespace foreshard
