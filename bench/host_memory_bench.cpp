// The AdamW step beside STREAM (McCalpin 1995) on one thread. The four kernels of STREAM are written in two ways, with ordinary
// stores, which fetch the line that they write, and with streaming ones, which do not. Counted are all bytes that move, and those
// that are fetched, for what one core waits for are lines on their way to it:
//
//                         bytes per fp32 element that move, and that are fetched; with streaming stores
//   copy   c = a          12   8     8  4
//   scale  b = s c        12   8     8  4
//   add    c = a + b      16  12    12  8
//   triad  a = b + s c    16  12    12  8
//   adamw                 28  16    reads gradient, m, v, value; writes m, v, value, whose lines it has fetched already
//
// STREAM asks for arrays of at least four times the last cache: the argument is the number of elements of each array.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

#include "exec/host/host_ops.h"

#ifdef __SSE__
#include <xmmintrin.h>
#endif

namespace foreshard {
namespace {

constexpr std::int64_t kLarge = std::int64_t{1} << 28, kMiddle = std::int64_t{1} << 26;

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};
using Floats = std::unique_ptr<float, FreeMemory>;

// Four arrays of kLarge small numbers, made once: touching so much memory for the first time takes seconds.
float* array(std::size_t index) {
  static const std::vector<Floats> arrays = [] {
    std::vector<Floats> all;
    for (int i = 0; i < 4; ++i) {
      all.emplace_back(static_cast<float*>(std::aligned_alloc(4096, static_cast<std::size_t>(kLarge) * sizeof(float))));
      std::fill_n(all.back().get(), kLarge, 0.001f);
    }
    return all;
  }();
  return arrays[index].get();
}

Operand operand(std::size_t index, std::int64_t elements) {
  return {reinterpret_cast<std::byte*>(array(index)), elements, DType::F32};
}

// Per element.
void count_bytes(benchmark::State& state, int moved, int fetched) {
  state.SetBytesProcessed(state.iterations() * state.range(0) * moved);
  state.counters["fetched"] =
      benchmark::Counter(static_cast<double>(state.range(0)) * fetched, benchmark::Counter::kIsIterationInvariantRate);
}

// Writes element i as value(i), past the caches where the processor can.
template <class Value>
void stream(std::int64_t elements, float* __restrict to, const Value& value) {
#ifdef __SSE__
  for (std::int64_t i = 0; i < elements; i += 16) {
    alignas(64) float line[16];
    for (std::int64_t j = 0; j < 16; ++j) line[j] = value(i + j);
    for (std::int64_t j = 0; j < 16; j += 4) _mm_stream_ps(to + i + j, _mm_load_ps(line + j));
  }
  _mm_sfence();
#else
  for (std::int64_t i = 0; i < elements; ++i) to[i] = value(i);
#endif
}

template <class Value>
void store(std::int64_t elements, float* __restrict to, const Value& value) {
  for (std::int64_t i = 0; i < elements; ++i) to[i] = value(i);
}

enum class Kernel : std::uint8_t { Copy, Scale, Add, Triad };

template <class Write>
void write_kernel(Kernel kernel, const float* __restrict a, const float* __restrict b, const Write& write) {
  switch (kernel) {
    case Kernel::Copy: return write([=](std::int64_t i) { return a[i]; });
    case Kernel::Scale: return write([=](std::int64_t i) { return 3.0f * a[i]; });
    case Kernel::Add: return write([=](std::int64_t i) { return a[i] + b[i]; });
    case Kernel::Triad: return write([=](std::int64_t i) { return a[i] + 3.0f * b[i]; });
  }
}

void run_stream(benchmark::State& state, Kernel kernel, bool past_caches) {
  const std::int64_t elements = state.range(0);
  const float *a = array(0), *b = array(1);
  float* c = array(2);
  for (auto _ : state) {
    if (past_caches)
      write_kernel(kernel, a, b, [&](const auto& value) { stream(elements, c, value); });
    else
      write_kernel(kernel, a, b, [&](const auto& value) { store(elements, c, value); });
    benchmark::ClobberMemory();
  }
  const int reads = kernel == Kernel::Copy || kernel == Kernel::Scale ? 1 : 2, fetched = reads + (past_caches ? 0 : 1);
  count_bytes(state, 4 * (fetched + 1), 4 * fetched);
}

void adamw(benchmark::State& state) {
  const std::int64_t elements = state.range(0);
  const Operand g = operand(0, elements), m = operand(1, elements), v = operand(2, elements), p = operand(3, elements);
  const std::vector<Operand> reads = {g, m, v, p}, writes = {m, v, p};
  const HostOp op({.op = ops::Adam{}, .phase = Phase::Update, .shapes = {{{elements}, DType::F32}}}, reads, writes);
  std::vector<std::byte> workspace(static_cast<std::size_t>(op.workspace().value) + 64);
  void* aligned = workspace.data();
  std::size_t space = workspace.size();
  std::align(64, space - 63, aligned, space);
  const std::span<std::byte> work(static_cast<std::byte*>(aligned), space);
  const OpArguments arguments{.optimizer = {.weight_decay = 0.1}};
  for (auto _ : state) op.run(reads, writes, work, arguments);
  count_bytes(state, 28, 16);
}
BENCHMARK(adamw)->Arg(kMiddle)->Arg(kLarge)->Unit(benchmark::kMillisecond);

const int kRegistered = [] {
  const std::pair<Kernel, const char*> kernels[] = {
      {Kernel::Copy, "copy"}, {Kernel::Scale, "scale"}, {Kernel::Add, "add"}, {Kernel::Triad, "triad"}};
  for (const auto& [kernel, name] : kernels)
    for (const bool past_caches : {false, true})
      benchmark::RegisterBenchmark(
          (std::string("stream_") + name + (past_caches ? "_past_caches" : "")).c_str(),
          [kernel = kernel, past_caches](benchmark::State& state) { run_stream(state, kernel, past_caches); })
          ->Arg(kLarge)
          ->Unit(benchmark::kMillisecond);
  return 0;
}();

}  // namespace
}  // namespace foreshard
