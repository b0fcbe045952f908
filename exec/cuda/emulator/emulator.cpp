#include "exec/cuda/emulator/emulator.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <exception>
#include <memory>
#include <numeric>

#include "exec/base/philox.h"
#include "exec/cuda/emulator/fiber.h"

namespace foreshard::emulator {

namespace {

constexpr int kWarp = 32;
constexpr int kWords = 10;

struct Site {  // of a barrier
  const char* file = nullptr;
  int line = 0;
  bool operator==(const Site& other) const {
    return line == other.line && (file == other.file || std::strcmp(file, other.file) == 0);
  }
  std::string name() const {
    const char* name = std::strrchr(file, '/');
    return std::string(name ? name + 1 : file) + ":" + std::to_string(line);
  }
};

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
    site_ = {};
    warps_.assign(static_cast<std::size_t>((threads_ + kWarp - 1) / kWarp), {});
    for (int t = 0; t < threads_; ++t) ++warps_[static_cast<std::size_t>(t / kWarp)].lanes;
    waits_.assign(static_cast<std::size_t>(threads_), {});
    self_ = {.threads = threads_, .block_x = x, .block_y = y, .blocks_x = grid_.x, .blocks_y = grid_.y};
    for (int t = 0; t < threads_; ++t) fibers_[static_cast<std::size_t>(t)]->begin(&Block::enter, this);
    while (live_ > 0) {
      progress_ = false;
      for (const int thread : order_) {
        if (waits_[static_cast<std::size_t>(thread)].still()) continue;
        go_on_as(thread);
        fibers_[static_cast<std::size_t>(thread)]->resume();
        if (fault_) std::rethrow_exception(fault_);
      }
      if (!progress_ && live_ > 0)
        throw Fault("the threads of a block wait for each other in vain" +
                    (site_.file ? " at " + site_.name() : std::string()));
    }
  }

  void barrier(const Site& site) {
    if (settings_.barriers) note(site.name());
    if (!settings_.no_barrier.empty() && site.name() == settings_.no_barrier) return;
    if (waiting_ > 0 && site_ != site) throw Fault("threads wait at two barriers: " + site_.name() + " and " + site.name());
    if (live_ < threads_) throw Fault("a thread has ended while others wait at " + site.name());
    site_ = site;
    if (++waiting_ == threads_) {
      waiting_ = 0;
      ++generation_;
      progress_ = true;
      return;
    }
    wait_for(generation_);
  }

  // The words of all lanes, by lane. The last lane that comes calls all_here(table) before the others go on.
  using Table = std::uint32_t[kWarp][kWords];
  template <class AllHere>
  const Table& exchange(const std::uint32_t* words, int count, AllHere all_here) {
    Warp& warp = *warp_;
    if (warp.lanes < kWarp) throw Fault("a warp without all its lanes exchanges words");
    Table& table = warp.table[warp.generation % 2];
    std::copy_n(words, count, table[self_.thread % kWarp]);
    if (warp.arrived + 1 == warp.lanes) all_here(table);
    meet(warp);
    return table;
  }
  const Table& exchange(std::uint32_t word) {
    return exchange(&word, 1, [](Table&) {});
  }
  void meet(Warp& warp) {
    if (++warp.arrived == warp.lanes) {
      warp.arrived = 0;
      ++warp.generation;
      progress_ = true;
      return;
    }
    wait_for(warp.generation);
  }
  void warp_barrier() {
    Warp& warp = *warp_;
    meet(warp);
    warp.barriers = warp.generation;
  }

  const Self& self() const { return self_; }
  void count_pack() const {
    if (settings_.packs) ++*settings_.packs;
  }
  bool checks_sharing() const { return settings_.checks_sharing; }
  std::uint64_t stamp() const { return serial_ << 24U | generation_; }
  std::uint64_t warp_stamp() const { return warp_->barriers; }

 private:
  static void enter(void* block) { static_cast<Block*>(block)->work(); }
  void work() {
    try {
      body_(args_);
    } catch (...) {
      fault_ = std::current_exception();
    }
    waits_[static_cast<std::size_t>(self_.thread)] = {.counter = &kNever};
    --live_;
    Warp& warp = *warp_;
    --warp.lanes;
    progress_ = true;
    if (waiting_ > 0 && !fault_)
      fault_ = std::make_exception_ptr(Fault("a thread has ended while others wait at " + site_.name()));
    if (warp.arrived > 0 && !fault_) fault_ = std::make_exception_ptr(Fault("a lane has ended while its warp exchanges words"));
  }
  // What a thread waits for: that a counter has no longer this value.
  struct Wait {
    const std::uint64_t* counter = nullptr;
    std::uint64_t value = 0;
    bool still() const { return counter && *counter == value; }
  };
  static constexpr std::uint64_t kNever = 0;  // the counter that those wait for that have ended
  void go_on_as(int thread) {
    self_.thread = thread;
    warp_ = &warps_[static_cast<std::size_t>(thread / kWarp)];
  }
  void wait_for(const std::uint64_t& counter) {
    const auto thread = static_cast<std::size_t>(self_.thread);
    waits_[thread] = {&counter, counter};
    fibers_[thread]->yield();  // until another value lets run() go on here
  }
  void note(const std::string& site) {
    auto& all = *settings_.barriers;
    if (std::find(all.begin(), all.end(), site) == all.end()) all.push_back(site);
  }
  Grid grid_;
  int threads_;
  void (*body_)(const void*);
  const void* args_;
  const Settings& settings_;
  static std::vector<std::unique_ptr<Fiber>> fibers_;  // reused in all launches
  std::vector<int> order_;
  std::vector<Wait> waits_;
  std::vector<Warp> warps_;
  Warp* warp_ = nullptr;  // of the running thread
  Self self_;
  int live_ = 0, waiting_ = 0;
  std::uint64_t generation_ = 0;
  static std::uint64_t serial_;  // number of the block over all launches; shared memory stores it with every access
  Site site_;
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
void barrier(const char* file, int line) { now->barrier({file, line}); }
void warp_barrier() { now->warp_barrier(); }
std::uint32_t exchange_xor(std::uint32_t value, int mask) { return now->exchange(value)[(self().thread % kWarp) ^ mask][0]; }
std::uint32_t exchange_from(std::uint32_t value, int lane) { return now->exchange(value)[lane][0]; }

// Which lane holds which element (PTX ISA, mma.m16n8k16; a condition counts as 0 or 1):
//   a (row, k)   lane (row mod 8) * 4 + (k mod 8) / 2, word (row >= 8) + 2 (k >= 8), half k mod 2
//   b (k, n)     lane n * 4 + (k mod 8) / 2, word (k >= 8), half k mod 2
//   d (row, n)   lane (row mod 8) * 4 + n / 2, number 2 (row >= 8) + n mod 2
// The last lane that comes multiplies for all of them, and each takes its numbers of d.
void multiply_fragments(float* d, const std::uint32_t* a, const std::uint32_t* b) {
  std::uint32_t words[kWords] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  std::memcpy(words + 6, d, 4 * sizeof *d);
  const auto& table = now->exchange(words, kWords, [](Block::Table& of) {
    const auto half = [](std::uint32_t word, int upper) {
      return std::bit_cast<float>(upper != 0 ? word & 0xFFFF0000U : word << 16U);
    };
    float left[16][16], right[16][8], sums[16][8];
    for (int lane = 0; lane < kWarp; ++lane) {
      const std::uint32_t* from = of[lane];
      const int group = lane / 4, pair = lane % 4 * 2;
      for (int i = 0; i < 8; ++i) left[group + i / 2 % 2 * 8][pair + i / 4 * 8 + i % 2] = half(from[i / 2], i % 2);
      for (int i = 0; i < 4; ++i) right[pair + i / 2 * 8 + i % 2][group] = half(from[4 + i / 2], i % 2);
      for (int i = 0; i < 4; ++i) sums[group + i / 2 * 8][pair + i % 2] = std::bit_cast<float>(from[6 + i]);
    }
    for (int row = 0; row < 16; ++row)
      for (int k = 0; k < 16; ++k)
        for (int n = 0; n < 8; ++n) sums[row][n] += left[row][k] * right[k][n];
    for (int lane = 0; lane < kWarp; ++lane)
      for (int i = 0; i < 4; ++i)
        of[lane][6 + i] = std::bit_cast<std::uint32_t>(sums[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2]);
  });
  std::memcpy(d, table[self().thread % kWarp] + 6, 4 * sizeof *d);
}

void no_element(const char* name, std::int64_t i) {
  throw Fault(std::string("shared ") + name + " has no element " + std::to_string(i));
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

namespace {

// An access of the running thread.
struct Access {
  int thread = self().thread;
  std::uint64_t stamp = now->stamp(), warp_stamp = now->warp_stamp();

  // Whether the access `other` was made by another thread since the last barrier of the block, or of the warp if both threads are in one.
  bool races(const Touch& other) const {
    if (other.stamp != stamp || other.thread == thread || !now->checks_sharing()) return false;
    return other.thread < 0 || other.thread / kWarp != thread / kWarp || other.warp_stamp == warp_stamp;
  }
  bool follows_a_write(const Shadow& shadow) const { return shadow.write.stamp >> 24U == stamp >> 24U; }
};

[[noreturn]] void misused(const char* name, const char* how) { throw Fault(std::string("shared ") + name + how); }

}  // namespace

void note_read(Shadow& shadow, const char* name) {
  const Access access;
  if (!access.follows_a_write(shadow)) misused(name, " is read before it is written");
  if (access.races(shadow.write)) misused(name, " is read with no barrier after the write");
  Touch& read = shadow.read;
  if (read.stamp == access.stamp && read.thread != access.thread && read.warp_stamp == access.warp_stamp)
    read.thread = -2;
  else
    read = {access.stamp, access.warp_stamp, access.thread};
}

void note_count(Shadow& shadow, const char* name) {
  const Access access;
  if (!access.follows_a_write(shadow)) misused(name, " is read before it is written");
  const bool adds = shadow.write.thread == -3 && shadow.write.stamp == access.stamp;
  if (!adds && access.races(shadow.write)) misused(name, " is added to with no barrier after the write");
  if (access.races(shadow.read)) misused(name, " is added to with no barrier after a read");
  shadow.write = {access.stamp, access.warp_stamp, -3};
}

void note_write(Shadow& shadow, const char* name) {
  const Access access;
  if (access.races(shadow.write)) misused(name, " is written twice with no barrier between");
  if (access.races(shadow.read)) misused(name, " is written with no barrier after a read");
  shadow.write = {access.stamp, access.warp_stamp, access.thread};
}

}  // namespace foreshard::emulator
