#include "exec/cuda_checks/calibrate_cuda.h"

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>

#include "core/op/eight_bit_factors.h"
#include "exec/cuda_checks/calibrate_bench.h"
#include "exec/nccl/cuda_communicator.h"

namespace foreshard::gpu {

namespace {

// A product of a linear layer, whose operands are the first elements of a, b and c.
struct Product {
  Compute what = {};
  std::vector<Operand> reads = {}, writes = {};
  Kernel kernel = {};

  void run(const Launcher& on) const {
    const OpArguments arguments;
    kernel.run(
        on,
        {.reads = reads, .writes = writes, .scratch = nullptr, .staged = nullptr, .table = nullptr, .arguments = arguments});
  }
};

Operand first_of(Operand operand, std::int64_t elements) {
  operand.elements = elements;
  return operand;
}

// Memory of the products. For fp8, operands are in 16 bits and are rounded into `factors`, as in plans.
struct ProductMemory {
  Operand a = {}, b = {}, c = {}, factors = {};
};

Product product_of(DType dtype, Phase phase, std::int64_t rows, std::int64_t n, std::int64_t k, const ProductMemory& memory,
                   Runtime& runtime) {
  const auto& [a, b, c, factors] = memory;
  Product made{.what = {.op = ops::MatMul{},
                        .phase = phase,
                        .shapes = {{{1, rows, n, k}, dtype}},
                        .flops = {2.0 * static_cast<double>(rows) * static_cast<double>(n) * static_cast<double>(k)},
                        .traffic = {(rows * k + n * k + rows * n) * size_of(a.dtype).value},
                        .accumulate = phase == Phase::WeightGrad}};  // as in a step of several micro-batches
  const std::int64_t x = rows * k, w = n * k, y = rows * n;
  made.reads = {first_of(a, phase == Phase::Forward ? x : y), first_of(b, phase == Phase::Forward ? w : x)};
  if (phase == Phase::InputGrad) made.reads.push_back(first_of(b, w));
  made.writes = {first_of(c, phase == Phase::Forward ? y : phase == Phase::InputGrad ? x : w)};
  if (factors.data) made.writes.push_back(factors);
  made.kernel = make_kernel(made.what, made.reads, made.writes, {&runtime});
  return made;
}

}  // namespace

void CudaMeasures::products(DType dtype, std::int64_t rows, const std::vector<std::int64_t>& sizes,
                            const std::function<void(const Compute&, Seconds)>& tell) {
  Bench bench(runtime_, sizes_.times, sizes_.lasting);
  const std::int64_t largest = sizes.empty() ? 0 : sizes.back(), most = std::max(rows * largest, largest * largest);
  const DType stored = dtype == DType::F8 ? DType::BF16 : dtype;
  ProductMemory memory;
  for (Operand* operand : {&memory.a, &memory.b, &memory.c})
    *operand = {bench.memory(Space::Device, size_of(stored) * most), most, stored};
  if (dtype == DType::F8) {
    const std::int64_t bytes = eight_bit_factors({{1, rows, largest, largest}, dtype}, Phase::Forward, {}, 2).end +
                               eight_bit_factors({{1, rows, largest, largest}, dtype}, Phase::WeightGrad, {}, 2).end;
    memory.factors = {bench.memory(Space::Device, {bytes}), bytes, DType::U8};
  }
  std::vector<Product> all;
  std::vector<Multiply> forms;
  for (const std::int64_t n : sizes)
    for (const std::int64_t k : sizes)
      for (const Phase phase : {Phase::Forward, Phase::InputGrad, Phase::WeightGrad}) {
        all.push_back(product_of(dtype, phase, rows, n, k, memory, runtime_));
        all.back().run(Launcher(forms));
      }
  choice_.decide(0, forms);  // sets all operands to 0
  for (const Operand& operand : {memory.a, memory.b, memory.c}) bench.fill_random(operand);
  const Launcher on(runtime_, bench.stream(), bench.memory(Space::Device, kMultiplyWorkspace), &choice_, 0);
  for (const Product& product : all)
    for (const Seconds time : bench.cold_and_warm([&] { product.run(on); })) tell(product.what, time);
}

Seconds CudaMeasures::start() {
  Bench bench(runtime_, sizes_.times, sizes_.lasting);
  std::byte* memory = bench.memory(Space::Device, {64});
  return bench.time(100, [&] { runtime_.fill(memory, std::byte{0}, {64}, bench.stream()); });
}

std::vector<ProfileTransfer> CudaMeasures::copies() {
  Bench bench(runtime_, sizes_.times, sizes_.lasting);
  std::vector<ProfileTransfer> all;
  const Bytes most = {std::int64_t{64} << 20U};
  std::byte *from = bench.memory(Space::Device, most), *to = bench.memory(Space::Device, most);
  for (Bytes bytes = {4096}; bytes <= most; bytes = bytes * 4)
    all.push_back({1, bytes, bench.time(10, [&] { runtime_.copy(to, from, bytes, bench.stream()); })});
  return all;
}

std::vector<HostCopy> CudaMeasures::host_copies() {
  Bench bench(runtime_, sizes_.times, sizes_.lasting);
  std::vector<HostCopy> all;
  const Bytes most = {std::int64_t{64} << 20U};
  std::byte* device = bench.memory(Space::Device, most);
  for (const bool pinned : {true, false}) {
    std::byte* host = bench.memory(pinned ? Space::PinnedHost : Space::PageableHost, most);
    for (const bool to_device : {true, false})
      for (Bytes bytes = {65536}; bytes <= most; bytes = bytes * 32)
        all.push_back({pinned, to_device, bytes, bench.time(4, [&] {
                         runtime_.copy(to_device ? device : host, to_device ? host : device, bytes, bench.stream());
                       })});
  }
  return all;
}

// In wall-clock time, from the moment when both ranks have arrived until both streams are empty.
std::vector<ProfileTransfer> CudaMeasures::all_reduces() {
  constexpr int kRanks = 2;
  std::vector<ProfileTransfer> all;
  for (std::int64_t bytes = 4096; bytes <= sizes_.reduced; bytes *= 4) {
    const Stop stop;
    CudaDevices devices(runtime_, stop);
    std::vector<std::unique_ptr<DeviceBackend>> backends;
    std::vector<std::unique_ptr<Communicator>> communicators;
    std::vector<std::unique_ptr<StreamTask>> tasks;
    for (int r = 0; r < kRanks; ++r) {
      backends.push_back(devices.device({r}, nullptr));
      communicators.push_back(devices.communicator({r}, *backends.back()));
      const MemoryRange block{backends.back()->arena(Space::Device, {bytes}), {bytes}, DType::F32};
      tasks.push_back(communicators.back()->collective(
          {.what = {.bytes = {bytes}, .dtype = DType::F32}, .members = {{0}, {1}}, .from = block, .to = block}));
    }
    devices.check();
    devices.connect();
    std::barrier meet(kRanks);
    std::exception_ptr failure;
    std::vector<double> seconds;
    const auto enqueue = [&](int rank) {
      const int gpu = rank % runtime_.devices();
      runtime_.select(gpu);
      EventPool events(runtime_, gpu, true);
      OnStream on{.runtime = runtime_,
                  .stream = runtime_.open_stream(false),
                  .scratch = nullptr,
                  .workspace = nullptr,
                  .met = events.take()};
      for (int i = 0; i < sizes_.times; ++i) {
        meet.arrive_and_wait();
        const auto before = std::chrono::steady_clock::now();
        static_cast<GpuTask&>(*tasks[static_cast<std::size_t>(rank)]).enqueue(on, i);
        runtime_.synchronize(on.stream);
        meet.arrive_and_wait();
        if (rank == 0 && i > 0)
          seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count());
      }
      runtime_.close_stream(on.stream);
    };
    std::mutex one;
    const auto work = [&](int rank) {
      try {
        enqueue(rank);
      } catch (...) {
        meet.arrive_and_drop();
        const std::lock_guard lock(one);
        failure = std::current_exception();
      }
    };
    std::thread other(work, 1);
    work(0);
    other.join();
    if (failure) std::rethrow_exception(failure);
    all.push_back({kRanks, {bytes}, {std::max(median(seconds), 1e-9)}});
  }
  return all;
}

MeasureSizes sizes_for(Bytes memory) {
  const bool small = memory.value < std::int64_t{8} << 30U;
  return {.product = small ? 256 : 2048,
          .sum = std::clamp(memory.value / 2560, std::int64_t{1} << 10U, std::int64_t{32} << 20U),
          .reduced = std::clamp(memory.value / 4096, std::int64_t{1} << 14U, std::int64_t{16} << 20U)};
}

// Times products alone, and while a sum kernel runs, which is enqueued before them and lasts longer: 1 - alone / slowed.
double CudaMeasures::collective_share() {
  Bench bench(runtime_, sizes_.times, sizes_.lasting), other(runtime_, sizes_.times, sizes_.lasting);
  const std::int64_t side = sizes_.product, summed = sizes_.sum;
  const auto array = [&](std::int64_t elements) {
    return Operand{bench.memory(Space::Device, {2 * elements}), elements, DType::BF16};
  };
  const Operand a = array(side * side), b = array(side * side), c = array(side * side), from = array(summed),
                to = array(summed);
  std::byte* workspace = bench.memory(Space::Device, kMultiplyWorkspace);
  const auto matrix = [&](const Operand& o) { return Matrix{.data = o.data, .row = side, .dtype = o.dtype}; };
  const Multiply product{.m = side, .n = side, .k = side, .a = matrix(a), .b = matrix(b), .c = matrix(c)};
  const auto multiply = [&] { runtime_.multiply(product, workspace, kMultiplyWorkspace, bench.stream()); };
  ReduceArgs sum = {.first = 0, .count = summed, .sources = 1, .targets = 1};
  sum.from[0] = reads(from), sum.to[0] = writes(to);
  const Launcher beside(runtime_, other.stream(), nullptr);
  const auto reduce = [&] { beside.elements(KernelId::reduce_peers, summed, sum); };
  constexpr int kProducts = 10;
  const Seconds alone = bench.time(kProducts, multiply), one_sum = other.time(kProducts, reduce);
  const auto sums = static_cast<int>(std::clamp(4 * kProducts * alone.value / one_sum.value, 8.0, 1000.0));
  const Seconds slowed = bench.time(kProducts, multiply, [&] {
    for (int i = 0; i < sums; ++i) reduce();
  });
  runtime_.synchronize(other.stream());
  return std::clamp(1 - alone.value / slowed.value, 0.0, 0.9);
}

// Memory that is not free after kernels and cuBLASLt were used once and all our memory was freed. If other processes use the GPU, their
// memory is included.
Bytes CudaMeasures::outside_memory() {
  {
    Bench bench(runtime_, sizes_.times, sizes_.lasting);
    std::byte* memory = bench.memory(Space::Device, {1024});
    const Matrix tile{.data = memory, .row = 8, .dtype = DType::F32};
    runtime_.fill(memory, std::byte{0}, {1024}, bench.stream());
    runtime_.multiply(
        {.m = 8, .n = 8, .k = 8, .a = tile, .b = tile, .c = {.data = memory + 256, .row = 8, .dtype = DType::F32}},
        bench.memory(Space::Device, kMultiplyWorkspace), kMultiplyWorkspace, bench.stream());
    const Launcher on(runtime_, bench.stream(), nullptr);
    const Operand from{memory + 512, 64, DType::F32}, to{memory + 768, 64, DType::F32};
    on.elements(KernelId::cast_array, 64, CastArgs{.x = reads(from), .y = writes(to), .count = 64});
    runtime_.synchronize(bench.stream());
  }
  return {std::max<std::int64_t>(0, runtime_.properties(0).memory.value - runtime_.free_memory(0).value)};
}

std::string CudaMeasures::machine() {
  const Properties found = runtime_.properties(0);
  return found.device + ", " + found.driver + ", " + found.libraries;
}

}  // namespace foreshard::gpu
