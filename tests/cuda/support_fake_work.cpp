// What a FakeRuntime runs beside products: copies, kernels in the emulator.
#include <sched.h>

#include <algorithm>
#include <cstring>

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
  if (settings_.numa_cpus.empty()) return;
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  for (const int cpu : settings_.numa_cpus) CPU_CLR(cpu, &set);
  if (CPU_COUNT(&set) > 0) ++far_calls_;
}

// The first launch of a kernel on a GPU loads it.
void FakeRuntime::load(const std::string& what, Stream* stream, std::chrono::milliseconds takes) {
  {
    const std::lock_guard lock(mutex_);
    if (!loaded_.insert({stream->device, what}).second) return;
  }
  if (takes.count() == 0) return;
  std::this_thread::sleep_for(takes / 2);  // who watches has seen the end of what came before
  if (what == kFakeProduct) pass();
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

}  // namespace foreshard::gpu
