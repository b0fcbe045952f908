#include "cli/cuda.h"

#include "core/error.h"
#include "exec/cuda/gpu_ranks.h"
#include "exec/cuda/load_cuda.h"

namespace foreshard {

std::unique_ptr<gpu::Runtime> use_device(const Arguments& arguments, ExecuteOptions& options, bool graphs) {
  const bool host = arguments.choice("--device", "host", {"host", "cuda"}) == "host";
  if (host && graphs) throw Error(kCommandLine, "--graphs", "--device host", "--device cuda");
  if (host) return nullptr;
  std::unique_ptr<gpu::Runtime> runtime = load_cuda();
  options.devices = gpu::ranks_on(*runtime, graphs);
  return runtime;
}

std::string gpus_in_words(gpu::Runtime& runtime) {
  const gpu::Properties first = runtime.properties(0);
  const std::string count = runtime.devices() > 1 ? std::to_string(runtime.devices()) + " x " : "";
  return count + first.device + " (" + first.driver + ", " + first.libraries + ")";
}

}  // namespace foreshard
