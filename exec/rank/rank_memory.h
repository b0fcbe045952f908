// The memory of one rank: one arena per space, in which every block lies at the offset that the plan gives it. It keeps track of the blocks
// that are alive.
//
// With guards, every block instead has its own place, with guard bytes before and after it, so that a kernel that writes outside its block
// is detected. The arena is then larger than that of the plan.
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
  bool poison = false;  // fills a block with bytes 0xFF (NaN) whenever it is acquired or released
  bool operator==(const MemoryChecks&) const = default;
};

class RankMemory {
 public:
  // Allocates the arenas on the device. Throws Error for a buffer that the ranks of a device share (Scope::Device), and for `poison` on a
  // device that cannot fill memory during a step.
  RankMemory(const Plan& plan, RoleId role, DeviceBackend& device, const MemoryChecks& checks);

  // Blocks are numbered from 0 over all buffers and slots of the role.
  int block(BufferId buffer, std::int32_t slot) const { return first_block_[buffer.index()] + slot; }
  std::byte* address(int block) const { return blocks_[static_cast<std::size_t>(block)].data; }
  const Buffer& buffer(int block) const { return role_.buffers[blocks_[static_cast<std::size_t>(block)].buffer.index()]; }
  std::byte* address(BufferId buffer) const { return address(block(buffer, 0)); }
  // Copies the contents of slot 0 of a buffer, from byte `at` on, to host memory, and back to all slots of it; called between runs. Several
  // slots of a resident buffer hold versions of the weights, of which only the newest, in slot 0, is kept.
  std::vector<std::byte> read(BufferId buffer, Bytes at, Bytes bytes) const;
  void write(BufferId buffer, Bytes at, std::span<const std::byte> bytes) const;
  // Address, number of elements and number format of what an instruction uses. Throws Error if it is not within the block, or not whole
  // elements.
  Operand operand(const Use& use, std::int32_t slot, const std::string& where) const;

  // Called at the start and the end of an instruction, by any thread. `acquire` throws DeviceError for a block that is alive, `release` for
  // one that is not.
  void acquire(const std::vector<int>& blocks);
  void release(const std::vector<int>& blocks);
  // Bytes of device memory that are alive, by category: between two runs (resident blocks, and those that one run leaves to the next), and
  // now.
  const LiveBytes& live_between_runs() const { return between_runs_; }
  LiveBytes live() const;
  Bytes arena(Space space) const;  // size of the arena; 0: there is none

  // Names the first block whose guard bytes were overwritten; "": none were, or there are no guards. Called between runs.
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
