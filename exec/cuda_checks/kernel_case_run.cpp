// Runs one case on a GPU and on the host. Before and after each operand there are border bytes, which no kernel may change.
#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "exec/cuda_checks/kernel_cases.h"
#include "exec/cuda_device/cuda_device.h"

namespace foreshard::gpu {

namespace {

constexpr std::int64_t kBorder = 256;
constexpr std::byte kBorderByte{0xFF};  // NaN in every floating-point format

struct Placed {
  Operand operand = {};
  std::vector<std::byte> bytes = {};  // including the borders
};

Placed placed(Runtime& runtime, GpuMemory& memory, Stream* stream, StoredArray& array) {
  const Operand from = array.operand();
  const std::int64_t size = from.elements * size_of(from.dtype).value;
  Placed place{.bytes = std::vector<std::byte>(static_cast<std::size_t>(size + 2 * kBorder), kBorderByte)};
  std::memcpy(place.bytes.data() + kBorder, from.data, static_cast<std::size_t>(size));
  std::byte* at = memory.allocate(Space::Device, {size + 2 * kBorder});
  runtime.copy(at, place.bytes.data(), {size + 2 * kBorder}, stream);
  runtime.synchronize(stream);
  place.operand = {at + kBorder, from.elements, from.dtype};
  return place;
}

// Reads an operand back from the GPU, and checks its borders.
bool fetch(Runtime& runtime, Stream* stream, Placed& place, StoredArray& array) {
  const auto size = static_cast<std::int64_t>(place.bytes.size());
  runtime.copy(place.bytes.data(), place.operand.data - kBorder, {size}, stream);
  runtime.synchronize(stream);
  std::memcpy(array.operand().data, place.bytes.data() + kBorder, static_cast<std::size_t>(size - 2 * kBorder));
  const auto whole = [](std::byte byte) { return byte == kBorderByte; };
  return std::all_of(place.bytes.begin(), place.bytes.begin() + kBorder, whole) &&
         std::all_of(place.bytes.end() - kBorder, place.bytes.end(), whole);
}

void run_kernel(const KernelCase& tried, Runtime& runtime, By by, Stream* stream, GpuMemory& memory,
                std::vector<StoredArray>& reads, std::vector<StoredArray>& writes, Outcome& outcome) {
  std::vector<Placed> from, to;
  std::vector<Operand> from_operands, to_operands;
  for (StoredArray& array : reads)
    from.push_back(placed(runtime, memory, stream, array)), from_operands.push_back(from.back().operand);
  for (StoredArray& array : writes)
    to.push_back(placed(runtime, memory, stream, array)), to_operands.push_back(to.back().operand);
  const Kernel kernel = make_kernel(tried.what, from_operands, to_operands,
                                    {by == By::OurKernels ? nullptr : &runtime, by == By::LibrariesInAnyOrder});
  const Bytes table_bytes = {static_cast<std::int64_t>(kernel.table.size())};
  std::byte *scratch = memory.allocate(Space::Device, kernel.scratch),
            *staged = memory.allocate(Space::PinnedHost, kernel.staged);
  std::byte *table = memory.allocate(Space::Device, table_bytes),
            *workspace = kernel.multiplies ? memory.allocate(Space::Device, kMultiplyWorkspace) : nullptr;
  if (scratch) runtime.fill(scratch, kBorderByte, kernel.scratch, stream);
  if (table) runtime.copy(table, kernel.table.data(), table_bytes, stream);
  if (kernel.prepare) kernel.prepare(staged, tried.arguments);
  kernel.run(Launcher(runtime, stream, workspace), {.reads = from_operands,
                                                    .writes = to_operands,
                                                    .scratch = scratch,
                                                    .staged = staged,
                                                    .table = table,
                                                    .arguments = tried.arguments});
  runtime.synchronize(stream);
  for (std::size_t i = 0; i < from.size(); ++i)
    outcome.borders_whole = fetch(runtime, stream, from[i], reads[i]) && outcome.borders_whole;
  for (std::size_t i = 0; i < to.size(); ++i)
    outcome.borders_whole = fetch(runtime, stream, to[i], writes[i]) && outcome.borders_whole;
}

}  // namespace

Outcome run_case(const KernelCase& tried, Runtime& runtime, By by) {
  for (const auto* arrays : {&tried.reads, &tried.writes})
    for (const StoredArray& array : *arrays) array.compute();  // not once for each copy
  std::vector<StoredArray> reads = tried.reads, on_host = tried.writes, on_gpu = tried.writes;
  run_on_host(tried.what, reads, on_host, tried.arguments);
  Outcome outcome;
  GpuMemory memory(runtime);
  Stream* stream = runtime.open_stream(false);
  try {
    run_kernel(tried, runtime, by, stream, memory, reads, on_gpu, outcome);
  } catch (const DeviceError& problem) {
    outcome.fault = problem.what();
  }
  runtime.close_stream(stream);
  for (std::size_t i = 0; i < on_gpu.size(); ++i)
    outcome.error = std::max(outcome.error, relative_error(on_gpu[i], on_host[i]));
  return outcome;
}

namespace {

std::vector<Operand> chosen(const std::vector<Placed>& all, const std::vector<std::size_t>& which) {
  std::vector<Operand> some;
  for (const std::size_t i : which) some.push_back(all[i].operand);
  return some;
}

struct PlacedPart {
  const Compute& what;
  std::vector<Operand> reads, writes;
  FusedPart view() const { return {what, reads, writes}; }
};

void run_kernel(Runtime& runtime, Stream* stream, GpuMemory& memory, const Kernel& kernel, const std::vector<Operand>& reads,
                const std::vector<Operand>& writes) {
  const OpArguments none;
  std::byte *scratch = memory.allocate(Space::Device, kernel.scratch),
            *workspace = memory.allocate(Space::Device, kMultiplyWorkspace);
  if (scratch) runtime.fill(scratch, kBorderByte, kernel.scratch, stream);
  kernel.run(Launcher(runtime, stream, workspace),
             {.reads = reads, .writes = writes, .scratch = scratch, .staged = nullptr, .table = nullptr, .arguments = none});
}

// False: the library does not support it.
bool run_fused(const FusedCase& tried, Runtime& runtime, Stream* stream, GpuMemory& memory, std::vector<Placed>& places) {
  std::vector<PlacedPart> parts;
  for (const FusedCase::Part& part : tried.parts)
    parts.push_back({part.what, chosen(places, part.reads), chosen(places, part.writes)});
  const bool forward = ops::is_forward(parts[0].what.phase);
  std::optional<FusedPart> bias;
  if (parts.size() == 3) bias.emplace(parts[2].view());
  const std::optional<Kernel> kernel = forward
                                           ? fuse_forward(parts[0].view(), parts[1].view(), runtime)
                                           : fuse_backward(parts[0].view(), parts[1].view(), bias ? &*bias : nullptr, runtime);
  if (!kernel) return false;
  std::vector<Operand> reads = parts[0].reads, writes = parts[0].writes;
  reads.insert(reads.end(), parts[1].reads.begin(), parts[1].reads.end());
  writes.insert(writes.end(), parts[1].writes.begin(), parts[1].writes.end());
  if (bias) writes.push_back(bias->writes[1]);
  run_kernel(runtime, stream, memory, *kernel, reads, writes);
  if (!bias) return true;
  const Kernel rest = make_kernel(bias->what, bias->reads, bias->writes.first(1), {&runtime});
  run_kernel(runtime, stream, memory, rest, parts[2].reads, {bias->writes[0]});
  return true;
}

}  // namespace

std::optional<Outcome> run_case(const FusedCase& tried, Runtime& runtime) {
  for (const StoredArray& array : tried.arrays) array.compute();
  std::vector<StoredArray> on_host = tried.arrays, on_gpu = tried.arrays;
  for (const FusedCase::Part& part : tried.parts) {
    std::vector<StoredArray> reads, writes;
    for (const std::size_t i : part.reads) reads.push_back(on_host[i]);
    for (const std::size_t i : part.writes) writes.push_back(on_host[i]);
    run_on_host(part.what, reads, writes, {});
    for (std::size_t i = 0; i < part.writes.size(); ++i) on_host[part.writes[i]] = writes[i];
  }
  Outcome outcome;
  GpuMemory memory(runtime);
  Stream* stream = runtime.open_stream(false);
  bool there = true;
  try {
    std::vector<Placed> places;
    for (StoredArray& array : on_gpu) places.push_back(placed(runtime, memory, stream, array));
    there = run_fused(tried, runtime, stream, memory, places);
    runtime.synchronize(stream);
    for (std::size_t i = 0; i < places.size(); ++i)
      outcome.borders_whole = fetch(runtime, stream, places[i], on_gpu[i]) && outcome.borders_whole;
  } catch (const DeviceError& problem) {
    outcome.fault = problem.what();
  }
  runtime.close_stream(stream);
  if (!there) return {};
  for (std::size_t i = 0; i < on_gpu.size(); ++i)
    if (i != tried.unwritten) outcome.error = std::max(outcome.error, relative_error(on_gpu[i], on_host[i]));
  return outcome;
}

}  // namespace foreshard::gpu
