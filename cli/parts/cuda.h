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

// Null for the host. With cuda the run is on GPUs, and the runtime has to outlive it. Throws DeviceError that says what is missing.
std::unique_ptr<gpu::Runtime> use_device(const Arguments& arguments, ExecuteOptions& options, gpu::GpuRuns runs = {});
// Of `run`: every instruction is timed only in the last step, whose trace is the result, unless the trace is asked for: a signal may end the run earlier.
gpu::GpuRuns gpu_runs(const Arguments& arguments, const ExecuteOptions& options);
// On GPUs, ranks of several processes meet by NCCL, and those of one with `--nccl`. Null: NCCL is not used. The library and what is passed have to
// outlive the run. Throws DeviceError when there is none.
std::unique_ptr<nccl::Library> use_nccl(const Arguments& arguments, gpu::Runtime* runtime, ProcessMesh* mesh, int ranks,
                                        ExecuteOptions& options);
// "2 x NVIDIA H200 (CUDA driver 13.0, ...)"
std::string gpus_in_words(gpu::Runtime& runtime);

}  // namespace foreshard
