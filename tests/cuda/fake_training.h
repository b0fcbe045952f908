// Trainings on GPUs that are not there.
#pragma once

#include "exec/cuda/gpu_ranks.h"
#include "exec/nccl/nccl_communicator.h"
#include "tests/cuda/fake_runtime.h"
#include "tests/cuda/twin_session.h"
#include "tests/exec/training.h"

namespace foreshard::gpu {

inline Strategy in_single(Strategy strategy) {
  strategy = in_double(strategy);
  strategy.precision = DType::F32;
  return strategy;
}

inline Model two_layers(Model model) {
  std::get<Transformer>(model.shape).layers = 2;
  return model;
}

inline ExecuteOptions fake_training(int steps) {
  ExecuteOptions options = training(steps);
  options.optimizer.eps = 1e-2;  // Adam makes much of the last bits of small gradients
  options.patience = std::chrono::milliseconds(60'000);
  return options;
}

// By our own communicator: rank r on GPU r modulo their number.
inline ExecuteOptions on_fake(FakeRuntime& runtime, int steps) {
  ExecuteOptions options = fake_training(steps);
  options.devices = ranks_on(runtime);
  return options;
}

inline ExecuteOptions by_twin(FakeRuntime& runtime, nccl::Library& library, const NcclOptions& nccl, int steps) {
  ExecuteOptions options = fake_training(steps);
  options.devices = ranks_by_nccl(runtime, library, nccl);
  return options;
}

// What it says when it fails; "" when it does not.
inline std::string failure_of(const Plan& plan, const ExecuteOptions& options) {
  try {
    static_cast<void>(execute(plan, options));
  } catch (const DeviceError& problem) {
    return problem.what();
  }
  return "";
}

}  // namespace foreshard::gpu
