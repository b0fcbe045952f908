// --device cuda: the GPUs of this machine, opened when a command asks for them.
#pragma once

#include <memory>
#include <string>

#include "cli/program/verb.h"
#include "exec/cuda/gpu_ranks.h"
#include "exec/cuda/runtime.h"
#include "exec/interpreter/execute.h"
#include "exec/mesh/process_mesh.h"
#include "exec/nccl/nccl.h"

namespace foreshard {

// With --device cuda sets up `options` to run on GPUs and returns the runtime, which must outlive the run; null for the host. Throws
// DeviceError, which says what is missing.
std::unique_ptr<gpu::Runtime> use_device(const Arguments& arguments, ExecuteOptions& options, gpu::GpuRuns runs = {});
// "the GPU kernels were not optimized ..."; empty: they were. Call it after use_device has opened the module.
std::string slow_kernels_note();
// The GPU settings of `run`. Instructions are timed in the last step only, because its trace is the result. With --trace,
// --save-result or emulated time they are timed in all steps, because a signal may end the run before the last step.
gpu::GpuRuns gpu_runs(const Arguments& arguments, const ExecuteOptions& options);
// Sets up `options` to communicate by NCCL: on GPUs always between several processes, within one process with --nccl. Null: NCCL is
// not used. The library and the arguments must outlive the run. Throws DeviceError when NCCL is needed and not found.
std::unique_ptr<nccl::Library> use_nccl(const Arguments& arguments, gpu::Runtime* runtime, ProcessMesh* mesh, int ranks,
                                        ExecuteOptions& options);
// "2 x NVIDIA H200 (CUDA driver 13.0, ...)".
std::string gpus_in_words(gpu::Runtime& runtime);

}  // namespace foreshard
