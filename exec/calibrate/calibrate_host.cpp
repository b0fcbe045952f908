#include "exec/calibrate/calibrate_host.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <thread>

#include "core/base/start_thread.h"
#include "exec/arithmetic/host_blas.h"
#include "exec/calibrate/calibrate.h"
#include "exec/communicator/thread_communicator.h"
#include "exec/host/host_device.h"
#include "exec/host/host_ops.h"

namespace foreshard {

namespace {

// Bytes of the last cache, as the kernel says. A C library that asks the processor itself is told 320 MiB in some virtual machines whose
// caches have 32; clearing that many took most of the time of calibrate --quick.
std::int64_t last_cache() {
  std::int64_t largest = 0;
  for (int index = 0; index < 8; ++index) {
    std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");  // "32768K"
    std::int64_t size = 0;
    char unit = ' ';
    if (file >> size >> unit) largest = std::max(largest, size << (unit == 'M' ? 20U : unit == 'K' ? 10U : 0U));
  }
  return largest > 0 ? largest : std::max(sysconf(_SC_LEVEL3_CACHE_SIZE), sysconf(_SC_LEVEL2_CACHE_SIZE));
}

// Bytes that are written before a product, to push its operands out of the caches: a step of training uses more bytes between two uses of a
// parameter than the last cache holds. At least 10 MiB.
std::size_t bytes_to_clear_caches() {
  const std::int64_t last = last_cache();
  return static_cast<std::size_t>(std::clamp(last, std::int64_t{8} << 20U, std::int64_t{256} << 20U)) * 5 / 4;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// CPU time of a call, in seconds.
template <class Call>
double time_of(const Call& call) {
  const std::int64_t before = thread_cpu_time();
  call();
  return static_cast<double>(thread_cpu_time() - before) * 1e-9;
}

// A matrix product as an instruction, with its operands.
class ProductProbe {
 public:
  ProductProbe(DType dtype, Phase phase, std::int64_t m, std::int64_t n, std::int64_t k) {
    const std::int64_t x = m * k, w = n * k, y = m * n, each = size_of(dtype).value;
    what_ = {.op = ops::MatMul{},
             .phase = phase,
             .shapes = {{{1, m, n, k}, dtype}},
             .flops = {2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k)},
             .traffic = {(x + w + y) * each},
             .accumulate = phase == Phase::WeightGrad};  // as in a step of several micro-batches
    switch (phase) {
      case Phase::InputGrad: reads_ = {{.elements = y}, {.elements = x}, {.elements = w}}, writes_ = {{.elements = x}}; break;
      case Phase::WeightGrad: reads_ = {{.elements = y}, {.elements = x}}, writes_ = {{.elements = w}}; break;
      case Phase::Forward:
      case Phase::Backward:
      case Phase::Recompute:
      case Phase::Update:
      case Phase::Other: reads_ = {{.elements = x}, {.elements = w}}, writes_ = {{.elements = y}}; break;
    }
    for (std::vector<Operand>* operands : {&reads_, &writes_})
      for (Operand& operand : *operands) {
        memory_.emplace_back(static_cast<std::size_t>(operand.elements * each), std::byte{0});
        operand.data = memory_.back().data(), operand.dtype = dtype;
      }
  }

  const Compute& what() const { return what_; }
  double time(std::vector<char>& unused) {
    const HostOp op(what_, reads_, writes_);
    std::vector<std::byte> workspace(static_cast<std::size_t>(op.workspace().value) + 64);
    std::byte* aligned = workspace.data() + (64 - reinterpret_cast<std::uintptr_t>(workspace.data()) % 64) % 64;
    const std::span<std::byte> scratch(aligned, static_cast<std::size_t>(op.workspace().value));
    std::vector<double> times;
    for (int i = 0; i < 4; ++i) {
      std::fill(unused.begin(), unused.end(), static_cast<char>(i));
      times.push_back(time_of([&] { op.run(reads_, writes_, scratch, {}); }));
    }
    return median({times.begin() + 1, times.end()});
  }

 private:
  Compute what_ = {};
  std::vector<Operand> reads_ = {}, writes_ = {};
  std::vector<std::vector<std::byte>> memory_ = {};
};

}  // namespace

void measure_products(DType dtype, std::int64_t rows, const std::vector<std::int64_t>& sizes,
                      const std::function<void(const Compute&, Seconds)>& tell) {
  std::vector<char> unused(bytes_to_clear_caches());
  for (const std::int64_t n : sizes)
    for (const std::int64_t k : sizes)
      for (const Phase phase : {Phase::Forward, Phase::InputGrad, Phase::WeightGrad}) {
        ProductProbe probe(dtype, phase, rows, n, k);
        tell(probe.what(), {probe.time(unused)});
      }
}

Seconds measure_start() {
  std::vector<double> block(64);
  const Operand operand{.data = reinterpret_cast<std::byte*>(block.data()), .elements = 8, .dtype = DType::F64};
  const Compute zero{.op = ops::Zero{}, .phase = Phase::Other, .shapes = {{{8}, DType::F64}}, .traffic = {64}};
  const std::vector<Operand> writes = {operand};
  const HostOp op(zero, {}, writes);
  std::vector<double> times;
  for (int i = 0; i < 101; ++i) times.push_back(time_of([&] { op.run({}, writes, {}, {}); }));
  return {std::max(median(times), 1e-9)};
}

std::vector<ProfileTransfer> measure_copies() {
  std::vector<ProfileTransfer> copies;
  for (std::size_t bytes = 4096; bytes <= (std::size_t{64} << 20U); bytes *= 4) {
    std::vector<char> from(bytes, 1), to(bytes, 0);
    std::vector<double> times;
    for (int i = 0; i < 9; ++i) times.push_back(time_of([&] { std::memcpy(to.data(), from.data(), bytes); }));
    copies.push_back({1, {static_cast<std::int64_t>(bytes)}, {std::max(median(times), 1e-9)}});
  }
  return copies;
}

std::vector<ProfileTransfer> measure_all_reduces() {
  constexpr int kRanks = 2, kRounds = 21;
  std::vector<ProfileTransfer> all;
  for (std::int64_t bytes = 4096; bytes <= std::int64_t{16} << 20U; bytes *= 4) {
    Stop stop;
    ThreadMeetings meetings(stop);
    std::vector<std::vector<float>> blocks(kRanks, std::vector<float>(static_cast<std::size_t>(bytes) / sizeof(float), 1.0F));
    std::vector<std::unique_ptr<StreamTask>> tasks;
    for (int r = 0; r < kRanks; ++r) {
      const MemoryRange block{reinterpret_cast<std::byte*>(blocks[static_cast<std::size_t>(r)].data()), {bytes}, DType::F32};
      tasks.push_back(ThreadCommunicator(meetings, RankId{r})
                          .collective({.what = {.bytes = {bytes}, .dtype = DType::F32, .combine = Combine::Mean},
                                       .members = {{0}, {1}},
                                       .from = block,
                                       .to = block}));
    }
    std::vector<double> times;
    std::thread other = start_thread([&] {
      for (int i = 0; i < kRounds; ++i) static_cast<void>(tasks[1]->run(i));
    });
    for (int i = 0; i < kRounds; ++i) {
      const auto before = std::chrono::steady_clock::now();
      static_cast<void>(tasks[0]->run(i));
      times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count());
    }
    other.join();
    all.push_back({kRanks, {bytes}, {std::max(median(times), 1e-9)}});
  }
  return all;
}

std::string machine_words() {
  std::ifstream file("/proc/cpuinfo");
  std::string processor = "a processor";
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name") && line.find(':') != std::string::npos) {
      processor = line.substr(line.find(':') + 2);
      break;
    }
  return processor + ", " + std::to_string(std::thread::hardware_concurrency()) + " cores, " + host::blas_name();
}

Bytes physical_memory() {
  return {static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::int64_t>(sysconf(_SC_PAGE_SIZE))};
}

}  // namespace foreshard
