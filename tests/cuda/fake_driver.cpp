// libcuda.so.1 of a machine without a GPU, for cudnn_plans_test.cpp: cuDNN builds plans for a GPU that it is described, and asks the driver to load
// the kernels that it compiles. Whatever is not here does nothing and succeeds (fake_driver_rest.inc, which CMake makes from the toolkit's stub).
#include <dlfcn.h>

#include <cstdint>
#include <string_view>

extern "C" {

int cuInit() { return 100; }  // no device
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuDeviceGetCount(int* count) { return *count = 1, 0; }
int cuDeviceGet(int* device) { return *device = 0, 0; }
// Compute capability, multiprocessors and shared memory of a block, by their numbers in cuda.h.
int cuDeviceGetAttribute(int* value, int which, int) {
  return *value = which == 75 ? 9 : which == 16 ? 132 : which == 97 ? 232448 : 0, 0;
}
int cuCtxGetCurrent(std::uintptr_t* context) { return *context = 0x4000, 0; }
int cuCtxGetDevice(int* device) { return *device = 0, 0; }
int cuFuncGetAttribute(int* value, int which) { return *value = which == 0 ? 1024 : 0, 0; }  // threads of a block
int cuKernelGetAttribute(int* value, int which) { return *value = which == 0 ? 1024 : 0, 0; }
int cuKernelGetFunction(std::uintptr_t* function) { return *function = 0x3000, 0; }
int cuLibraryGetKernel(std::uintptr_t* kernel) { return *kernel = 0x2000, 0; }
int cuLibraryLoadData(std::uintptr_t* library) { return *library = 0x1000, 0; }
int cuModuleGetFunction(std::uintptr_t* function) { return *function = 0x3000, 0; }
int cuModuleLoadData(std::uintptr_t* module) { return *module = 0x1000, 0; }
int cuModuleLoadDataEx(std::uintptr_t* module) { return *module = 0x1000, 0; }
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* count) { return *count = 1, 0; }
int cuGetExportTable(void** table) { return *table = nullptr, 500; }  // not found
int cuGetProcAddress_v2(const char* name, void** function, int, std::uint64_t, int* status) {
  static void* const here = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  *function = dlsym(here, name);
  if (status != nullptr) *status = *function != nullptr ? 0 : 1;
  return *function != nullptr ? 0 : 500;
}
int cuGetProcAddress(const char* name, void** function) { return cuGetProcAddress_v2(name, function, 0, 0, nullptr); }

#define NOTHING(name) \
  int name() { return 0; }
#include "fake_driver_rest.inc"
}
