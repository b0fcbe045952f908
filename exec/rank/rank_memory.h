// The memory of one rank: an arena per space with the offsets that the plan fixed, and an account of the blocks alive in it.
//
// With guards every block has a place of its own with guard bytes on both sides instead, so that a kernel that writes past a
// block is found; the arena is then larger than the plan's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "core/plan/plan.h"
#include "core/result/memory_timeline.h"
#include "exec/device/device.h"

namespace foreshard {

struct MemoryChecks {
  bool guards = false;
  bool poison = false;  // what is not alive holds bytes 0xFF (not a number) where it is acquired and released
  bool operator==(const MemoryChecks&) const = default;
};

class RankMemory {
 public:
  // Allocates the arenas. Throws Error for a space or scope that no host memory can be.
  RankMemory(const Plan& plan, RoleId role, DeviceBackend& device, const MemoryChecks& checks);

  int block(BufferId buffer, std::int32_t slot) const { return first_block_[buffer.index()] + slot; }
  std::byte* address(int block) const { return blocks_[static_cast<std::size_t>(block)].data; }
  const Buffer& buffer(int block) const { return role_.buffers[blocks_[static_cast<std::size_t>(block)].buffer.index()]; }
  std::byte* address(BufferId buffer) const { return address(block(buffer, 0)); }
  // Bytes of slot 0 from `at` on, as they are between runs; of host memory, wherever the block lies.
  std::vector<std::byte> read(BufferId buffer, Bytes at, Bytes bytes) const;
  void write(BufferId buffer, Bytes at, std::span<const std::byte> bytes) const;
  // The operand that a use names. Throws Error when it reaches outside the block.
  Operand operand(const Use& use, std::int32_t slot, const std::string& where) const;

  // At the begin and the end of an instruction, on any thread. Throw DeviceError when a block is alive already, or not alive.
  void acquire(const std::vector<int>& blocks);
  void release(const std::vector<int>& blocks);
  // Of device memory: resident blocks and those that one run leaves to the next.
  const LiveBytes& live_between_runs() const { return between_runs_; }
  LiveBytes live() const;  // now
  Bytes arena(Space space) const;

  // Names the first block whose guards were written to; empty when all are whole.
  std::string broken_guard() const;

 private:
  struct Place {
    BufferId buffer = {};
    std::int32_t slot = 0;
    std::byte* data = nullptr;
    bool alive = false;
  };
  void lay_out();
  void find_lives(const Plan& plan);
  void fill(const Place& place, std::byte with) const;
  void count(const Place& place, int sign);
  void set_alive(const std::vector<int>& blocks, bool alive);

  const Role& role_;
  DeviceBackend& device_;
  MemoryChecks checks_;
  std::vector<int> first_block_;
  std::vector<Place> blocks_;
  std::vector<std::pair<Space, Bytes>> arenas_;

  LiveBytes between_runs_ = {};
  mutable std::mutex mutex_;
  LiveBytes live_ = {};
};

}  // namespace foreshard
