// The twin of NCCL on the streams of FakeRuntimes.
#pragma once

#include "tests/cuda/fake_runtime.h"
#include "tests/cuda/nccl_twin.h"

namespace foreshard::gpu {

// What the twin asks of the runtimes whose streams it works on.
inline TwinSettings on_fake_streams(TwinSettings settings) {
  settings.put = [](Stream* stream, const std::string& what, const std::vector<TwinRange>& ranges,
                    std::function<Meeting()> state) {
    std::vector<std::pair<const std::byte*, const std::byte*>> reads, writes;
    for (const TwinRange& range : ranges) (range.write ? writes : reads).emplace_back(range.begin, range.end);
    return FakeRuntime::of(stream).put_meeting(stream, what, reads, writes, std::move(state));
  };
  settings.ordered = [](const Stream* earlier, std::uint64_t entry, const Stream* later) {
    return FakeRuntime::of(later).ordered(earlier, entry - 1, later);
  };
  settings.gpu = [](const Stream* stream) { return FakeRuntime::gpu_of(stream); };
  settings.captures = [] { return FakeRuntime::captures(); };
  return settings;
}

}  // namespace foreshard::gpu
