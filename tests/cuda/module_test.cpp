// The CUDA module itself, where it is built: it opens, all its symbols are there, and it says how its kernels were compiled. No GPU.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "exec/cuda/load_cuda.h"

namespace foreshard::gpu::module_test {

TEST(CudaModule, OptionsThatTakeOptimizationsBack) {
  for (const char* options : {"-O3", "-O3 -lineinfo", "-O3 -Xptxas -v", "-O3 -Xptxas=-O3 --threads=2"})
    EXPECT_TRUE((KernelBuild{"90", options}.optimized())) << options;
  for (const char* options :
       {"-O3 -Xcicc -O1", "-O3 -Xptxas -O1", "-O3 -Xptxas=-O0", "-O3 -G", "-O3 -O2", "-O3 --device-debug"})
    EXPECT_FALSE((KernelBuild{"90", options}.optimized())) << options;
}

TEST(CudaModule, OpensAndSaysHowItWasCompiled) {
#ifdef FORESHARD_CUDA_MODULE
  void* const module = dlopen(FORESHARD_CUDA_MODULE, RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr && std::string(dlerror()).find("cannot open shared object file") != std::string::npos)
    GTEST_SKIP() << "the toolkit's libraries are not in the loader's path";
  ASSERT_NE(module, nullptr) << dlerror();
  const auto kernels = reinterpret_cast<KernelsEntry>(dlsym(module, kKernelsEntry));
  const auto entry = reinterpret_cast<ModuleEntry>(dlsym(module, kModuleEntry));
  ASSERT_NE(kernels, nullptr);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(std::string(kernels()), FORESHARD_CUDA_KERNELS);
  const char* why = "";
  EXPECT_EQ(entry(kModuleVersion - 1, &why), nullptr);
  EXPECT_STREQ(why, "libforeshard_cuda.so is of another build");
#else
  GTEST_SKIP() << "built without the CUDA toolkit";
#endif
}

}  // namespace foreshard::gpu::module_test
