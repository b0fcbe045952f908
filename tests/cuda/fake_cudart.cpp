// The calls of libcudart that cudnn-frontend makes, of a machine without a GPU, for cudnn_plans_test.cpp.
#include <cuda_runtime_api.h>

#include <cstring>

#undef cudaDeviceGetAttribute
#undef cudaGetDeviceProperties

extern "C" {

cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  *value = which == cudaDevAttrComputeCapabilityMajor         ? 9
           : which == cudaDevAttrMultiProcessorCount          ? 132
           : which == cudaDevAttrMaxSharedMemoryPerBlockOptin ? 232448
                                                              : 0;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* found, int) {
  *found = {}, found->major = 9, found->multiProcessorCount = 132;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties_v2(cudaDeviceProp* found, int device) { return cudaGetDeviceProperties(found, device); }
}
