// The twin of NCCL on the streams of a FakeRuntime.
#pragma once

#include "tests/cuda/fake_runtime.h"
#include "tests/cuda/nccl_twin.h"

namespace foreshard::gpu {

// What the twin asks of the runtime whose streams it works on.
inline TwinSettings working_on(FakeRuntime& runtime, TwinSettings settings) {
  settings.put = [&runtime](Stream* stream, const std::string& what, const std::vector<TwinRange>& ranges,
                            std::function<bool()> ready) {
    std::vector<std::pair<const std::byte*, const std::byte*>> reads, writes;
    for (const TwinRange& range : ranges) (range.write ? writes : reads).emplace_back(range.begin, range.end);
    runtime.put_meeting(stream, what, reads, writes, std::move(ready));
  };
  settings.captures = [&runtime] { return runtime.captures(); };
  return settings;
}

}  // namespace foreshard::gpu
