#include "cli/parts/cuda.h"

#include <cstdlib>

#include "core/base/error.h"
#include "exec/cuda/load_cuda.h"
#include "exec/mesh/process_place.h"
#include "exec/nccl/nccl_ranks.h"

namespace foreshard {

std::unique_ptr<gpu::Runtime> use_device(const Arguments& arguments, ExecuteOptions& options, gpu::GpuRuns runs) {
  const bool host = arguments.choice("--device", "host", {"host", "cuda"}) == "host";
  if (host && runs.graphs) throw Error(kCommandLine, "--graphs", "--device host", "--device cuda");
  if (host) return nullptr;
  std::unique_ptr<gpu::Runtime> runtime = load_cuda();
  options.devices = gpu::ranks_on(*runtime, runs);
  return runtime;
}

std::string slow_kernels_note() {
  const KernelBuild kernels = kernel_build();
  if (kernels.optimized()) return "";
  return "the GPU kernels were not optimized (nvcc " + kernels.options +
         "): times say little; cmake --preset release && cmake --build build/release compiles them again";
}

gpu::GpuRuns gpu_runs(const Arguments& arguments, const ExecuteOptions& options) {
  const bool all = options.time == TimeMode::Emulated || arguments.has("--trace") || arguments.has("--save-result");
  return {.graphs = arguments.flag("--graphs"),
          .timed_from = all ? 0 : options.steps - 1,
          .fuse = !arguments.flag("--no-epilogues"),
          .any_order = arguments.flag("--any-order"),
          .products = gpu::product_file_path()};
}

std::unique_ptr<nccl::Library> use_nccl(const Arguments& arguments, gpu::Runtime* runtime, ProcessMesh* mesh, int ranks,
                                        ExecuteOptions& options) {
  const bool asked = arguments.flag("--nccl");
  if (!runtime && asked) throw Error(kCommandLine, "--nccl", "--device host", "--device cuda");
  if (!runtime || (!mesh && !asked)) return nullptr;
  const auto variable = [](const char* name) -> const char* { return std::getenv(name); };
  std::unique_ptr<nccl::Library> library = nccl::open_library(variable);
  gpu::NcclOptions nccl{.ranks = ranks, .mesh = mesh, .runs = gpu_runs(arguments, options)};
  nccl.meet = options.limits.first_use;
  nccl.shares_gpus = gpu::shares_gpus(*library, variable("NCCL_MULTI_RANK_GPU_ENABLE"));
  if (mesh) {
    const int here = mesh->first_rank(mesh->process() + 1) - mesh->first_rank(mesh->process());
    const auto place = process_place(variable);
    nccl.first_gpu = (place ? place->local : 0) * here;
  }
  options.devices = gpu::ranks_by_nccl(*runtime, *library, nccl);
  options.across_processes = true;
  return library;
}

std::string gpus_in_words(gpu::Runtime& runtime) {
  const gpu::Properties first = runtime.properties(0);
  const std::string count = runtime.devices() > 1 ? std::to_string(runtime.devices()) + " x " : "";
  return count + first.device + " (" + first.driver + ", " + first.libraries + ")";
}

}  // namespace foreshard
