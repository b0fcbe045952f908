// What a FakeRuntime runs: copies, kernels in the emulator, products by the host.
#include <sched.h>

#include <algorithm>
#include <cstring>

#include "exec/host/host_blas.h"
#include "exec/host/host_convert.h"
#include "tests/cuda/emulated_kernels.h"
#include "tests/cuda/fake_parts.h"

namespace foreshard::gpu {

void FakeRuntime::begin_range(const char* name) {
  const std::lock_guard lock(mutex_);
  open_ranges_[std::this_thread::get_id()].emplace_back(name);
}
void FakeRuntime::end_range() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string>& open = open_ranges_[std::this_thread::get_id()];
  if (open.empty()) return conflicts_.push_back("a range ends that has not begun");
  ++ranges_[open.back()];
  open.pop_back();
}

void FakeRuntime::note_place() {
  if (settings_.near_cpus.empty()) return;
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  for (const int cpu : settings_.near_cpus) CPU_CLR(cpu, &set);
  if (CPU_COUNT(&set) > 0) ++far_calls_;
}

static constexpr const char* kProduct = "cublasLtMatmul";

// The first launch of a kernel on a GPU loads it.
void FakeRuntime::load(const std::string& what, Stream* stream, std::chrono::milliseconds takes) {
  {
    const std::lock_guard lock(mutex_);
    if (!loaded_.insert({stream->device, what}).second) return;
  }
  if (takes.count() == 0) return;
  std::this_thread::sleep_for(takes / 2);  // who watches has seen the end of what came before
  if (what == kProduct) pass();
  std::this_thread::sleep_for(takes / 2);
}

void FakeRuntime::fill(std::byte* to, std::byte with, Bytes bytes, Stream* stream) {
  put_work(stream, "cudaMemsetAsync", {{to, to + bytes.value, true}},
           [=] { std::memset(to, static_cast<int>(with), static_cast<std::size_t>(bytes.value)); });
}
void FakeRuntime::copy(std::byte* to, const std::byte* from, Bytes bytes, Stream* stream) {
  put_work(stream, "cudaMemcpyAsync", {{from, from + bytes.value, false}, {to, to + bytes.value, true}},
           [=] { std::memmove(to, from, static_cast<std::size_t>(bytes.value)); });
}

void FakeRuntime::launch(const Launch& launch, Stream* stream) {
  expect_current(stream, std::string("cudaLaunchKernel of ") + name_of(launch.kernel));
  load(name_of(launch.kernel), stream, settings_.first_use);
  note_place();
  {
    const std::lock_guard lock(mutex_);
    const int number = launches_[launch.kernel]++;
    if (launch.kernel == settings_.dropped_kernel && number == settings_.dropped_work) return;
  }
  constexpr std::int64_t kSizes[] = {4, 2, 2, 8, 8, 1};
  std::vector<std::uint64_t> args((launch.bytes + 7) / 8);  // aligned
  std::memcpy(args.data(), launch.args, launch.bytes);
  std::vector<Range> ranges;
  each_array(launch.kernel, args.data(), [&](const View& view) {
    const std::int64_t each = kSizes[static_cast<int>(view.type)];
    auto* begin = static_cast<std::byte*>(view.data);
    ranges.push_back({begin, begin + view.elements * each, view.writes});
    if (views_++ == settings_.shifted_view) const_cast<View&>(view).data = begin + each;
  });
  put_work(stream, name_of(launch.kernel), ranges, [this, launch, ranges, device = stream->device, args = std::move(args)] {
    failure_ = out_of_reach(device, ranges);
    if (!failure_.empty()) return;
    static std::mutex emulator;  // which runs one block at a time, whoever asks
    const std::lock_guard lock(emulator);
    try {
      run_emulated(launch.kernel, {launch.blocks_x, launch.blocks_y}, launch.threads, args.data(), settings_.kernels);
    } catch (const emulator::Fault& fault) {
      failure_ = std::string(name_of(launch.kernel)) + ": " + fault.what();
    }
  });
}

namespace {

// One product of a batch as a plain array.
std::vector<float> loaded(const Matrix& matrix, std::int64_t rows, std::int64_t columns, std::int64_t number) {
  std::vector<float> all(static_cast<std::size_t>(rows * columns));
  const Operand operand{matrix.data + number * matrix.step * size_of(matrix.dtype).value, INT64_MAX, matrix.dtype};
  for (std::int64_t r = 0; r < rows; ++r) host::load(operand, r * matrix.row, columns, all.data() + r * columns);
  return all;
}

void multiply_now(const Multiply& w) {
  for (std::int64_t i = 0; i < w.count; ++i) {
    const std::vector<float> a = loaded(w.a, w.a.transposed ? w.k : w.m, w.a.transposed ? w.m : w.k, i);
    const std::vector<float> b = loaded(w.b, w.b.transposed ? w.n : w.k, w.b.transposed ? w.k : w.n, i);
    std::vector<float> c(static_cast<std::size_t>(w.m * w.n)), bias(static_cast<std::size_t>(w.n));
    if (w.keep != 0) c = loaded(w.c, w.m, w.n, i);
    if (w.bias) host::load({const_cast<std::byte*>(w.bias), w.n, w.c.dtype}, 0, w.n, bias.data());
    host::multiply({.m = w.m,
                    .n = w.n,
                    .k = w.k,
                    .a = a.data(),
                    .lda = w.a.transposed ? w.m : w.k,
                    .transpose_a = w.a.transposed,
                    .b = b.data(),
                    .ldb = w.b.transposed ? w.k : w.n,
                    .transpose_b = w.b.transposed,
                    .c = c.data(),
                    .ldc = w.n,
                    .alpha = w.alpha,
                    .beta = w.keep});
    const Operand to{w.c.data + i * w.c.step * size_of(w.c.dtype).value, INT64_MAX, w.c.dtype};
    for (std::int64_t r = 0; r < w.m; ++r) {
      float* row = c.data() + r * w.n;
      for (std::int64_t n = 0; n < w.n; ++n) row[n] += bias[static_cast<std::size_t>(n)];
      host::store(row, w.n, to, r * w.c.row);
    }
  }
}

}  // namespace

void FakeRuntime::multiply(const Multiply& w, std::byte* workspace, Bytes bytes, Stream* stream) {
  expect_current(stream, kProduct);
  load(kProduct, stream, settings_.first_product);
  const auto range = [&](const Matrix& matrix, std::int64_t rows, std::int64_t columns, bool write) {
    const std::int64_t last = (w.count - 1) * matrix.step + (rows - 1) * matrix.row + columns;
    return Range{matrix.data, matrix.data + last * size_of(matrix.dtype).value, write};
  };
  std::vector<Range> ranges = {range(w.a, w.a.transposed ? w.k : w.m, w.a.transposed ? w.m : w.k, false),
                               range(w.b, w.b.transposed ? w.n : w.k, w.b.transposed ? w.k : w.n, false),
                               range(w.c, w.m, w.n, true)};
  if (workspace) ranges.push_back({workspace, workspace + bytes.value, true});
  const std::uint32_t aligned = std::min(alignment(w.c.data), w.bias ? alignment(w.bias) : 256);
  const std::uint32_t needed = [&] {
    const std::lock_guard lock(mutex_);
    return chosen_.try_emplace(form_of(w, stream->device), aligned).first->second;
  }();
  if (w.bias) ranges.push_back({w.bias, w.bias + w.n * size_of(w.c.dtype).value, false});
  put_work(stream, "cublasLtMatmul", ranges, [this, w, ranges, device = stream->device, misaligned = aligned < needed] {
    failure_ = misaligned ? "cudaErrorMisalignedAddress" : out_of_reach(device, ranges);
    if (failure_.empty()) multiply_now(w);
  });
}

}  // namespace foreshard::gpu
