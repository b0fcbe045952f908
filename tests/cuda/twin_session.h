// The twin of NCCL, attached to the streams of FakeRuntimes.
#pragma once

#include <dlfcn.h>

#include <cstdlib>

#include "exec/nccl/nccl.h"
#include "tests/cuda/twin_streams.h"

namespace foreshard::gpu {

class TwinSession {
 public:
  explicit TwinSession(TwinSettings settings = {}) : library_(FORESHARD_NCCL_TWIN) {
    void* handle = dlopen(FORESHARD_NCCL_TWIN, RTLD_NOW | RTLD_LOCAL);
    control_ = reinterpret_cast<TwinEntry>(dlsym(handle, kTwinEntry))();
    control_->begin(on_fake_streams(std::move(settings)));
  }
  ~TwinSession() {
    control_->begin({});
    for (const char* variable : {"NCCL_LAUNCH_ORDER_IMPLICIT", "NCCL_MULTI_RANK_GPU_ENABLE"}) unsetenv(variable);
  }
  TwinSession(const TwinSession&) = delete;
  TwinSession& operator=(const TwinSession&) = delete;
  nccl::Library& library() { return library_; }
  TwinReport end() { return control_->end(); }

 private:
  nccl::Library library_;
  TwinControl* control_ = nullptr;
};

}  // namespace foreshard::gpu
