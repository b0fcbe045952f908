#include "exec/cuda/emulator/emulator.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <numeric>

#include "exec/base/philox.h"
#include "exec/cuda/emulator/fiber.h"

namespace foreshard::emulator {

namespace {

constexpr int kWarp = 32;
constexpr int kWords = 6;

struct Warp {
  std::uint32_t table[2][kWarp][kWords] = {};
  std::uint64_t generation = 0, barriers = 0;
  int arrived = 0, lanes = 0;
};

// A thread block; one runs at a time.
class Block {
 public:
  Block(const Grid& grid, int threads, void (*body)(const void*), const void* args, const Settings& settings)
      : grid_(grid), threads_(threads), body_(body), args_(args), settings_(settings) {
    if (threads < 1 || threads > 1024) throw Fault("a block of " + std::to_string(threads) + " threads");
    while (fibers_.size() < static_cast<std::size_t>(threads)) fibers_.push_back(std::make_unique<Fiber>());
    order_.resize(static_cast<std::size_t>(threads));
    std::iota(order_.begin(), order_.end(), 0);
    if (settings.order == 1) std::reverse(order_.begin(), order_.end());
    for (std::size_t i = order_.size(); settings.order > 1 && i > 1; --i)
      std::swap(order_[i - 1], order_[philox(settings.order, 1, i)[0] % i]);
  }

  void run(unsigned x, unsigned y) {
    ++serial_;
    live_ = threads_, waiting_ = 0, generation_ = 0, fault_ = nullptr;
    site_.clear();
    warps_.assign(static_cast<std::size_t>((threads_ + kWarp - 1) / kWarp), {});
    for (int t = 0; t < threads_; ++t) ++warps_[static_cast<std::size_t>(t / kWarp)].lanes;
    ended_.assign(static_cast<std::size_t>(threads_), 0);
    self_ = {.threads = threads_, .block_x = x, .block_y = y, .blocks_x = grid_.x, .blocks_y = grid_.y};
    for (int t = 0; t < threads_; ++t) fibers_[static_cast<std::size_t>(t)]->begin(&Block::enter, this);
    while (live_ > 0) {
      progress_ = false;
      for (const int thread : order_) {
        if (ended_[static_cast<std::size_t>(thread)]) continue;
        self_.thread = thread;
        fibers_[static_cast<std::size_t>(thread)]->resume();
        if (fault_) std::rethrow_exception(fault_);
      }
      if (!progress_ && live_ > 0)
        throw Fault("the threads of a block wait for each other in vain" + (site_.empty() ? std::string() : " at " + site_));
    }
  }

  void barrier(const std::string& site) {
    note(site);
    if (site == settings_.no_barrier) return;
    if (waiting_ > 0 && site_ != site) throw Fault("threads wait at two barriers: " + site_ + " and " + site);
    if (live_ < threads_) throw Fault("a thread has ended while others wait at " + site);
    site_ = site;
    if (++waiting_ == threads_) {
      waiting_ = 0;
      ++generation_;
      progress_ = true;
      return;
    }
    const std::uint64_t generation = generation_;
    while (generation_ == generation) pause();
  }

  const std::uint32_t (*exchange(const std::uint32_t* words, int count))[kWords] {
    Warp& warp = this->warp();
    if (warp.lanes < kWarp) throw Fault("a warp without all its lanes exchanges words");
    const std::uint64_t generation = warp.generation;
    auto& table = warp.table[generation % 2];
    std::copy_n(words, count, table[self_.thread % kWarp]);
    meet(warp);
    return table;
  }
  void meet(Warp& warp) {
    const std::uint64_t generation = warp.generation;
    if (++warp.arrived == warp.lanes) {
      warp.arrived = 0;
      ++warp.generation;
      progress_ = true;
      return;
    }
    while (warp.generation == generation) pause();
  }
  void warp_barrier() {
    Warp& warp = this->warp();
    meet(warp);
    warp.barriers = warp.generation;
  }

  const Self& self() const { return self_; }
  void count_pack() const {
    if (settings_.packs) ++*settings_.packs;
  }
  bool checks_sharing() const { return settings_.checks_sharing; }
  std::uint64_t stamp() const { return serial_ << 24U | generation_; }
  std::uint64_t serial() const { return serial_; }
  std::uint64_t warp_stamp() { return warp().barriers; }

 private:
  static void enter(void* block) { static_cast<Block*>(block)->work(); }
  void work() {
    try {
      body_(args_);
    } catch (...) {
      fault_ = std::current_exception();
    }
    const int thread = self_.thread;
    ended_[static_cast<std::size_t>(thread)] = 1;
    --live_;
    Warp& warp = this->warp();
    --warp.lanes;
    progress_ = true;
    if (waiting_ > 0 && !fault_) fault_ = std::make_exception_ptr(Fault("a thread has ended while others wait at " + site_));
    if (warp.arrived > 0 && !fault_) fault_ = std::make_exception_ptr(Fault("a lane has ended while its warp exchanges words"));
  }
  void pause() {
    const int thread = self_.thread;
    fibers_[static_cast<std::size_t>(thread)]->yield();
    self_.thread = thread;
  }
  void note(const std::string& site) {
    if (!settings_.barriers) return;
    auto& all = *settings_.barriers;
    if (std::find(all.begin(), all.end(), site) == all.end()) all.push_back(site);
  }
  Warp& warp() { return warps_[static_cast<std::size_t>(self_.thread / kWarp)]; }

  Grid grid_;
  int threads_;
  void (*body_)(const void*);
  const void* args_;
  const Settings& settings_;
  static std::vector<std::unique_ptr<Fiber>> fibers_;  // reused in all launches
  std::vector<int> order_;
  std::vector<char> ended_;
  std::vector<Warp> warps_;
  Self self_;
  int live_ = 0, waiting_ = 0;
  std::uint64_t generation_ = 0;
  static std::uint64_t serial_;  // number of the block over all launches; shared memory stores it with every access
  std::string site_;
  bool progress_ = false;
  std::exception_ptr fault_;
};
std::uint64_t Block::serial_ = 0;
std::vector<std::unique_ptr<Fiber>> Block::fibers_;
Block* now = nullptr;

}  // namespace

void run(const Grid& grid, int threads, void (*body)(const void*), const void* args, const Settings& settings) {
  Block block(grid, threads, body, args, settings);
  now = &block;
  for (unsigned y = 0; y < grid.y; ++y)
    for (unsigned x = 0; x < grid.x; ++x) block.run(x, y);
  now = nullptr;
}

const Self& self() { return now->self(); }
void barrier(const char* file, int line) {
  const char* name = std::strrchr(file, '/');
  now->barrier(std::string(name ? name + 1 : file) + ":" + std::to_string(line));
}
void warp_barrier() { now->warp_barrier(); }
std::uint32_t exchange_xor(std::uint32_t value, int mask) {
  return now->exchange(&value, 1)[(self().thread % kWarp) ^ mask][0];
}
std::uint32_t exchange_from(std::uint32_t value, int lane) { return now->exchange(&value, 1)[lane][0]; }

// Which lane holds which element (PTX ISA, mma.m16n8k16; a condition counts as 0 or 1):
//   a (row, k)   lane (row mod 8) * 4 + (k mod 8) / 2, word (row >= 8) + 2 (k >= 8), half k mod 2
//   b (k, n)     lane n * 4 + (k mod 8) / 2, word (k >= 8), half k mod 2
//   d (row, n)   lane (row mod 8) * 4 + n / 2, number 2 (row >= 8) + n mod 2
void multiply_fragments(float* d, const std::uint32_t* a, const std::uint32_t* b) {
  const std::uint32_t words[kWords] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  const auto* table = now->exchange(words, kWords);
  const auto half = [](std::uint32_t word, int upper) {
    const std::uint32_t bits = upper != 0 ? word & 0xFFFF0000U : word << 16U;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  };
  const int lane = self().thread % kWarp, group = lane / 4, pair = lane % 4;
  for (int i = 0; i < 4; ++i) {
    const int row = group + (i >= 2 ? 8 : 0), column = 2 * pair + i % 2;
    for (int k = 0; k < 16; ++k) {
      const int from = k % 8 / 2;
      d[i] += half(table[row % 8 * 4 + from][(row >= 8 ? 1 : 0) + (k >= 8 ? 2 : 0)], k % 2) *
              half(table[column * 4 + from][4 + (k >= 8 ? 1 : 0)], k % 2);
    }
  }
}

void check_array(const gpu::View& array, std::int64_t first, std::int64_t count, bool write) {
  if (first < 0 || count < 0 || first + count > array.elements)
    throw Fault((write ? "a write to element " : "a read of element ") + std::to_string(first < 0 ? first : first + count - 1) +
                " of an array of " + std::to_string(array.elements));
  if (write && !array.writes) throw Fault("a write to an array that is only read");
}

void check_pack(const gpu::View& array, std::int64_t first, std::int64_t count, bool write) {
  check_array(array, first, count, write);
  now->count_pack();
  if (!gpu::on_pack_border(array) || first % count != 0)
    throw Fault("16 bytes in one access from element " + std::to_string(first) +
                ", which does not lie at a multiple of 16 bytes");
}

// Whether the access `other` was made by another thread since the last barrier of the block, or of the warp if both threads are in one.
static bool races(const Touch& other) {
  const int me = self().thread;
  if (!now->checks_sharing() || other.stamp != now->stamp() || other.thread == me) return false;
  return other.thread < 0 || other.thread / kWarp != me / kWarp || other.warp_stamp == now->warp_stamp();
}

void note_read(Shadow& shadow, const char* name) {
  if (shadow.write.stamp >> 24U != now->serial()) throw Fault(std::string("shared ") + name + " is read before it is written");
  if (races(shadow.write)) throw Fault(std::string("shared ") + name + " is read with no barrier after the write");
  Touch& read = shadow.read;
  const int me = self().thread;
  if (read.stamp == now->stamp() && read.thread != me && read.warp_stamp == now->warp_stamp())
    read.thread = -2;
  else
    read = {now->stamp(), now->warp_stamp(), me};
}

void note_count(Shadow& shadow, const char* name) {
  if (shadow.write.stamp >> 24U != now->serial()) throw Fault(std::string("shared ") + name + " is read before it is written");
  const bool adds = shadow.write.thread == -3 && shadow.write.stamp == now->stamp();
  if (!adds && races(shadow.write)) throw Fault(std::string("shared ") + name + " is added to with no barrier after the write");
  if (races(shadow.read)) throw Fault(std::string("shared ") + name + " is added to with no barrier after a read");
  shadow.write = {now->stamp(), now->warp_stamp(), -3};
}

void note_write(Shadow& shadow, const char* name) {
  if (races(shadow.write)) throw Fault(std::string("shared ") + name + " is written twice with no barrier between");
  if (races(shadow.read)) throw Fault(std::string("shared ") + name + " is written with no barrier after a read");
  shadow.write = {now->stamp(), now->warp_stamp(), self().thread};
}

}  // namespace foreshard::emulator
