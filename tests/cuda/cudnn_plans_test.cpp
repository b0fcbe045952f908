// The real cuDNN, where it is installed, asked for plans for our graphs without a GPU: it is described one (its properties in JSON), and finds a driver
// and a runtime that do nothing (fake_driver.cpp, fake_cudart.cpp). It shows which forms cuDNN has and their workspaces, not that they run.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "core/plan/attention_memory.h"
#include "exec/cuda/module/attention_library.h"

namespace foreshard::gpu::cudnn_plans_test {

#ifdef FORESHARD_CUDNN_MODULE

struct Described {
  int capability = 90, multiprocessors = 132;
  std::int64_t memory = 150'754'820'096, shared_memory = 232'448;
};

static std::string text_of(const Described& gpu) {
  return R"({"deviceVer":)" + std::to_string(10 * gpu.capability) + R"(,"driverVer":13000,"cudaDeviceId":0,"totalGlobalMem":)" +
         std::to_string(gpu.memory) +
         R"(,"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,"multiProcessorCount":)" +
         std::to_string(gpu.multiprocessors) +
         R"(,"warpSize":32,"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":)" +
         std::to_string(gpu.shared_memory) +
         R"(,"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,)"
         R"("maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,"smClockRateKHz":1980000,)"
         R"("memClockRateKHz":3201000,"l2CacheSize":62914560,"deviceName":"a GPU that is not there"})";
}

// Packed queries, keys and values, as most models have them.
static AttentionCall packed(const AttentionSizes& at, bool backward, bool any_order, float dropped) {
  AttentionCall call = {
      .samples = at.samples, .heads = at.heads, .kv_heads = at.kv_heads, .queries = at.queries, .keys = at.keys};
  call.dim = at.dim, call.value_dim = at.value_dim, call.scale = 0.1F, call.causal = true;
  call.backward = backward, call.any_order = any_order, call.dropped = dropped;
  const std::int64_t width = at.heads * at.dim + at.kv_heads * (at.dim + at.value_dim), values = at.heads * at.value_dim;
  call.q = call.dq = call.k = call.dk = {nullptr, width, at.dim, at.samples * width};
  call.v = call.dv = {nullptr, width, at.value_dim, at.samples * width};
  call.context = call.dcontext = {nullptr, values, at.value_dim, at.samples * values};
  return call;
}

// The libraries are opened once and stay; null: cuDNN or what it needs is not here.
static AttentionLibrary* library() {
  setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", FORESHARD_FAKE_CUDART, 1);
  if (dlopen(FORESHARD_FAKE_DRIVER, RTLD_NOW | RTLD_GLOBAL) == nullptr) return nullptr;
  for (const char* name : {"/libnvrtc.so", "/libcublasLt.so", "/libcudnn.so.9"})  // found by their names from now on
    static_cast<void>(dlopen((std::string(FORESHARD_TOOLKIT_LIBRARIES) + name).c_str(), RTLD_NOW | RTLD_GLOBAL));
  void* const module = dlopen(FORESHARD_CUDNN_MODULE, RTLD_NOW | RTLD_LOCAL);
  const auto entry = module ? reinterpret_cast<AttentionEntry>(dlsym(module, kAttentionEntry)) : nullptr;
  return entry ? entry() : nullptr;
}

TEST(CudnnPlans, TheWorkspaceIsWithinItsBoundAndNeitherDirectionComesAlone) {
  AttentionLibrary* const cudnn = library();
  if (cudnn == nullptr) GTEST_SKIP() << "no cuDNN here";
  const std::string version = cudnn->version();
  const Described gpus[] = {{}, {100, 148, 191'503'138'816}, {80, 108, 85'100'000'000, 166'912}};
  const AttentionSizes form = {1, 32, 8, 8192, 8192, 128, 128};  // llama-3-8b; half a second of compilation each
  for (const Described& gpu : gpus)
    for (const bool any_order : {false, true}) {
      if (any_order && gpu.capability == 100) continue;
      const std::string name = version + ", sm " + std::to_string(gpu.capability) + (any_order ? ", any order" : "");
      const AttentionAnswer backward = cudnn->answer_for(packed(form, true, any_order, 0), text_of(gpu), gpu.capability);
      ASSERT_TRUE(backward.workspace) << name << ": " << backward.refusal;
      const std::int64_t bound = attention_workspace(form, fixed_order_of(gpu.capability), any_order).value;
      EXPECT_LE(backward.workspace->value, bound) << name;
    }
  const AttentionAnswer forward = cudnn->answer_for(packed(form, false, false, 0), text_of({}), 90);
  ASSERT_TRUE(forward.workspace) << forward.refusal;
  EXPECT_LE(forward.workspace->value, 1 << 20);
  // Heads of no multiple of 8 elements it has in no direction, which beyond_library says.
  const AttentionSizes odd = {2, 4, 4, 64, 64, 20, 20};
  for (const bool backward : {false, true}) {
    const AttentionAnswer none = cudnn->answer_for(packed(odd, backward, false, 0), text_of({}), 90);
    EXPECT_FALSE(none.workspace);
    EXPECT_FALSE(none.refusal.empty());
  }
}

#else

TEST(CudnnPlans, TheWorkspaceIsWithinItsBoundAndNeitherDirectionComesAlone) { GTEST_SKIP() << "built without cuDNN's headers"; }

#endif

}  // namespace foreshard::gpu::cudnn_plans_test
