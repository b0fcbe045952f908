// A CUDA module without CUDA: what the program opens as libforeshard_cuda.so gives it a FakeRuntime, and the twin of NCCL, where FORESHARD_NCCL names
// that, works on it. So the program itself is tested with --device cuda and --nccl on machines without a GPU (tests/cli/nccl_test.cpp).
//
//   TWIN_GPUS, TWIN_NVLINKED    FakeSettings::devices, nvlinked (2, 1)
//   TWIN_MEMORY                 MiB of a GPU (1024)
//   TWIN_NCCL_VERSION           the twin's (22809)
//   TWIN_REPORT                 a file: what the twin and the runtime saw, at the end of the program
#include <dlfcn.h>

#include <cstdlib>
#include <fstream>
#include <memory>

#include "exec/cuda/load_cuda.h"
#include "tests/cuda/twin_streams.h"

namespace foreshard::gpu {
namespace {

int number(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

FakeSettings settings() {
  FakeSettings asked;
  asked.devices = number("TWIN_GPUS", 2), asked.nvlinked = number("TWIN_NVLINKED", 1);
  asked.connections = number("CUDA_DEVICE_MAX_CONNECTIONS", 8);
  asked.memory = {std::int64_t{number("TWIN_MEMORY", 1024)} << 20U};
  return asked;
}

class TwinRuntime : public FakeRuntime {
 public:
  TwinRuntime() : FakeRuntime(settings()) {
    const char* path = std::getenv("FORESHARD_NCCL");
    library_ = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
    void* entry = library_ ? dlsym(library_, kTwinEntry) : nullptr;
    if (!entry) return;
    control_ = reinterpret_cast<TwinEntry>(entry)();
    control_->begin(on_fake_streams({.version = number("TWIN_NCCL_VERSION", 22809)}));
  }
  ~TwinRuntime() override {
    const char* path = std::getenv("TWIN_REPORT");
    const TwinReport report = control_ ? control_->end() : TwinReport{};
    if (control_) control_->begin({});
    if (!path) return;
    std::ofstream out(path);
    out << "calls " << report.calls << "\ncommunicators " << report.comms << "\ndestroyed " << report.destroyed << "\ngraphs "
        << graph_launches() << "\nconnections " << connections() << "\n";
    for (const std::string& complaint : report.complaints) out << "complaint: " << complaint << "\n";
    for (const std::string& conflict : conflicts()) out << "conflict: " << conflict << "\n";
  }

 private:
  void* library_ = nullptr;  // stays open
  TwinControl* control_ = nullptr;
};

}  // namespace
}  // namespace foreshard::gpu

extern "C" const char* foreshard_cuda_kernels() {
  const char* told = std::getenv("TWIN_KERNELS");
  return told ? told : "90|-O3";
}
extern "C" foreshard::gpu::Runtime* foreshard_cuda_runtime(int version, const char** why) {
  if (version == foreshard::gpu::kModuleVersion) return new foreshard::gpu::TwinRuntime;
  *why = "the twin is of another build";
  return nullptr;
}
