// The interface of libforeshard_cudnn.so, which calls cuDNN. It is a module of its own, because few machines have cuDNN.
// libforeshard_cuda.so opens it from its own folder when it is first needed. If it is missing, or libcudnn is, our own attention kernels
// are used.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "exec/cuda/attention_call.h"

namespace foreshard::gpu {

struct AttentionAnswer {
  std::optional<Bytes> workspace = {};  // nothing: cuDNN does not support the attention
  std::string refusal = {};             // and why
};

// All functions may be called from any thread. `device` is the GPU that the calling thread has selected.
class AttentionLibrary {
 public:
  virtual ~AttentionLibrary() = default;
  virtual std::string version() const = 0;
  // Bytes of workspace that `run` needs; nothing: cuDNN does not support this attention, and `refusal` says why.
  virtual std::optional<Bytes> workspace(const AttentionCall& call, int device) = 0;
  virtual std::string refusal(const AttentionCall& call, int device) = 0;
  // The same for a GPU that need not be there: `device` is cuDNN's description of it (cudnnBackendDeviceProp, JSON), `capability` its compute
  // capability times ten. Plans of it cannot run. For tests, which ask about GPUs on machines that have none.
  virtual AttentionAnswer answer_for(const AttentionCall& call, const std::string& device, int capability) = 0;
  // Enqueues the attention on a cudaStream_t. Returns an error message; empty on success.
  virtual std::string run(const AttentionCall& call, int device, std::byte* workspace, void* stream) = 0;
};

inline constexpr const char* kAttentionEntry = "foreshard_attention_library";
using AttentionEntry = AttentionLibrary* (*)();  // entry point of the module; returns null if there is no libcudnn.so.9

std::unique_ptr<AttentionLibrary> open_attention_library();  // null if the module or libcudnn is missing

}  // namespace foreshard::gpu
