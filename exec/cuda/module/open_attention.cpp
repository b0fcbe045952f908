#include <dlfcn.h>

#include <filesystem>

#include "exec/cuda/module/attention_library.h"

namespace foreshard::gpu {

std::unique_ptr<AttentionLibrary> open_attention_library() {
  Dl_info here = {};
  if (dladdr(reinterpret_cast<const void*>(&open_attention_library), &here) == 0) return nullptr;
  const std::filesystem::path beside = std::filesystem::path(here.dli_fname).parent_path() / "libforeshard_cudnn.so";
  void* module = dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL);
  const auto entry = module ? reinterpret_cast<AttentionEntry>(dlsym(module, kAttentionEntry)) : nullptr;
  return std::unique_ptr<AttentionLibrary>(entry ? entry() : nullptr);
}

}  // namespace foreshard::gpu
