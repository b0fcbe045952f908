// The twin of NCCL, attached to a FakeRuntime with a GPU for each rank.
#pragma once

#include <dlfcn.h>

#include "exec/cuda/nccl.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/cuda/nccl_twin.h"

namespace foreshard::gpu {

class TwinSession {
 public:
  TwinSession(FakeRuntime& runtime, TwinSettings settings = {}) : library_(FORESHARD_NCCL_TWIN) {
    void* handle = dlopen(FORESHARD_NCCL_TWIN, RTLD_NOW | RTLD_LOCAL);
    control_ = reinterpret_cast<TwinEntry>(dlsym(handle, kTwinEntry))();
    settings.put = [&runtime](Stream* stream, const std::string& what, const std::vector<TwinRange>& ranges,
                              std::function<bool()> ready) {
      std::vector<std::pair<const std::byte*, const std::byte*>> reads, writes;
      for (const TwinRange& range : ranges) (range.write ? writes : reads).emplace_back(range.begin, range.end);
      runtime.put_meeting(stream, what, reads, writes, std::move(ready));
    };
    control_->begin(std::move(settings));
  }
  ~TwinSession() { control_->begin({}); }
  TwinSession(const TwinSession&) = delete;
  TwinSession& operator=(const TwinSession&) = delete;
  nccl::Library& library() { return library_; }
  TwinReport end() { return control_->end(); }

 private:
  nccl::Library library_;
  TwinControl* control_ = nullptr;
};

}  // namespace foreshard::gpu
