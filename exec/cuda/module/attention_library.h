// libforeshard_cudnn.so: cuDNN behind an interface of ours, in a module of its own, because few machines have it. libforeshard_cuda.so opens it beside
// itself when an attention is asked for; without it, or without libcudnn, there is no such attention, and kernels of ours do it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "exec/cuda/attention_call.h"

namespace foreshard::gpu {

// All calls may come from any thread, for the GPU that it has selected.
class AttentionLibrary {
 public:
  virtual ~AttentionLibrary() = default;
  virtual std::string version() const = 0;
  virtual std::optional<Bytes> workspace(const AttentionCall& call, int device) = 0;
  // What went wrong; empty: nothing.
  virtual std::string run(const AttentionCall& call, int device, std::byte* workspace, void* stream) = 0;
};

inline constexpr const char* kAttentionEntry = "foreshard_attention_library";
using AttentionEntry = AttentionLibrary* (*)();  // null: no libcudnn.so.9

std::unique_ptr<AttentionLibrary> open_attention_library();

}  // namespace foreshard::gpu
