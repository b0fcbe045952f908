#include "exec/cuda/module/cuda_runtime.h"

#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "core/base/error.h"
#include "exec/cuda/load_cuda.h"
#include "exec/cuda/module/attention_library.h"
#include "exec/cuda/module/kernels.h"
#include "exec/cuda/numa_cpus.h"

namespace foreshard::gpu {

namespace {

void expect(cudaError_t status, const std::string& call) {
  if (status != cudaSuccess)
    throw DeviceError(call, std::string(cudaGetErrorName(status)) + " (" + cudaGetErrorString(status) + ")");
}
#define CUDA(call, ...) expect(call(__VA_ARGS__), #call)

cudaStream_t of(Stream* stream) { return reinterpret_cast<cudaStream_t>(stream); }
cudaEvent_t of(Event* event) { return reinterpret_cast<cudaEvent_t>(event); }
std::size_t size(Bytes bytes) { return static_cast<std::size_t>(bytes.value); }

std::string version_text(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

class CudaRuntime : public Runtime {
 public:
  explicit CudaRuntime(int devices) : devices_(devices) {}

  int devices() override { return devices_; }
  void select(int device) override { CUDA(cudaSetDevice, device); }

  Properties properties(int device) override {
    cudaDeviceProp found = {};
    CUDA(cudaGetDeviceProperties, &found, device);
    int driver = 0, runtime = 0;
    CUDA(cudaDriverGetVersion, &driver);
    CUDA(cudaRuntimeGetVersion, &runtime);
    return {.device = found.name,
            .driver = "CUDA driver " + version_text(driver),
            .libraries = "CUDA runtime " + version_text(runtime) + ", " + products_.version() + ", " +
                         (attentions() ? attentions()->version() : "no cuDNN"),
            .products = products_.version(),
            .memory = {static_cast<std::int64_t>(found.totalGlobalMem)},
            .capability = 10 * found.major + found.minor,
            .bus = bus(device),
            .cpus = numa_cpus(bus(device)),
            .nvlinks = nvlinks(device)};
  }

  Bytes free_memory(int device) override {
    std::size_t free = 0, total = 0;
    select(device);
    CUDA(cudaMemGetInfo, &free, &total);
    return {static_cast<std::int64_t>(free)};
  }
  // Enabling access a second time is an error, which is ignored.
  bool reach(int device, int peer) override {
    int can = 0;
    CUDA(cudaDeviceCanAccessPeer, &can, device, peer);
    if (can == 0) return false;
    select(device);
    const cudaError_t status = cudaDeviceEnablePeerAccess(peer, 0);
    if (status != cudaErrorPeerAccessAlreadyEnabled) expect(status, "cudaDeviceEnablePeerAccess");
    static_cast<void>(cudaGetLastError());
    return true;
  }

  std::byte* allocate(Space space, Bytes bytes) override {
    void* memory = nullptr;
    const std::string what = " of " + std::to_string(bytes.value) + " bytes";
    switch (space) {
      case Space::Device:
        expect(cudaMalloc(&memory, size(bytes)), "cudaMalloc" + what);
        CUDA(cudaMemset, memory, 0, size(bytes));
        break;
      case Space::PinnedHost:
        expect(cudaHostAlloc(&memory, size(bytes), cudaHostAllocDefault), "cudaHostAlloc" + what);
        std::memset(memory, 0, size(bytes));
        break;
      case Space::PageableHost:
      case Space::Nvme:
        memory = std::aligned_alloc(4096, (size(bytes) + 4095) / 4096 * 4096);
        if (!memory) throw DeviceError("allocation" + what, "out of memory");
        std::memset(memory, 0, size(bytes));
        break;
    }
    return static_cast<std::byte*>(memory);
  }
  void release(Space space, std::byte* memory) override {
    switch (space) {
      case Space::Device: cudaFree(memory); return;
      case Space::PinnedHost: cudaFreeHost(memory); return;
      case Space::PageableHost:
      case Space::Nvme: std::free(memory); return;
    }
  }

  Stream* open_stream(bool urgent) override {
    int least = 0, greatest = 0;
    CUDA(cudaDeviceGetStreamPriorityRange, &least, &greatest);
    cudaStream_t stream = nullptr;
    CUDA(cudaStreamCreateWithPriority, &stream, cudaStreamNonBlocking, urgent ? greatest : least);
    return reinterpret_cast<Stream*>(stream);
  }
  Stream* legacy_stream() override { return reinterpret_cast<Stream*>(cudaStreamLegacy); }
  void close_stream(Stream* stream) override { cudaStreamDestroy(of(stream)); }
  Event* make_event(bool timed) override {
    cudaEvent_t event = nullptr;
    CUDA(cudaEventCreateWithFlags, &event, timed ? cudaEventDefault : cudaEventDisableTiming);
    return reinterpret_cast<Event*>(event);
  }
  void drop_event(Event* event) override { cudaEventDestroy(of(event)); }

  void record(Event* event, Stream* stream) override {
    cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
    CUDA(cudaStreamIsCapturing, of(stream), &capturing);
    if (capturing == cudaStreamCaptureStatusNone)
      CUDA(cudaEventRecord, of(event), of(stream));
    else  // an event-record node of the graph, so that the event can be queried outside of the graph
      CUDA(cudaEventRecordWithFlags, of(event), of(stream), cudaEventRecordExternal);
  }
  void wait(Stream* stream, Event* event) override { CUDA(cudaStreamWaitEvent, of(stream), of(event), 0); }
  bool done(Event* event) override {
    const cudaError_t status = cudaEventQuery(of(event));
    if (status == cudaErrorNotReady) return false;
    expect(status, "cudaEventQuery");
    return true;
  }
  bool idle(Stream* stream) override {
    const cudaError_t status = cudaStreamQuery(of(stream));
    if (status == cudaErrorNotReady) return false;
    expect(status, "cudaStreamQuery");
    return true;
  }
  void synchronize(Stream* stream) override { CUDA(cudaStreamSynchronize, of(stream)); }
  std::int64_t nanoseconds(Event* from, Event* to) override {
    float milliseconds = 0;
    CUDA(cudaEventElapsedTime, &milliseconds, of(from), of(to));
    return static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6);
  }

  void begin_capture(Stream* stream) override { CUDA(cudaStreamBeginCapture, of(stream), cudaStreamCaptureModeThreadLocal); }
  Graph* end_capture(Stream* stream) override {
    cudaGraph_t drawn = nullptr;
    CUDA(cudaStreamEndCapture, of(stream), &drawn);
    cudaGraphExec_t graph = nullptr;
    const cudaError_t status = cudaGraphInstantiate(&graph, drawn, 0);
    cudaGraphDestroy(drawn);
    expect(status, "cudaGraphInstantiate");
    return reinterpret_cast<Graph*>(graph);
  }
  void launch(Graph* graph, Stream* stream) override {
    CUDA(cudaGraphLaunch, reinterpret_cast<cudaGraphExec_t>(graph), of(stream));
  }
  void drop_graph(Graph* graph) override { cudaGraphExecDestroy(reinterpret_cast<cudaGraphExec_t>(graph)); }

  void begin_range(const char* name) override { nvtxRangePushA(name); }
  void end_range() override { nvtxRangePop(); }

  void fill(std::byte* to, std::byte with, Bytes bytes, Stream* stream) override {
    CUDA(cudaMemsetAsync, to, static_cast<int>(with), size(bytes), of(stream));
  }
  void copy(std::byte* to, const std::byte* from, Bytes bytes, Stream* stream) override {
    CUDA(cudaMemcpyAsync, to, from, size(bytes), cudaMemcpyDefault, of(stream));
  }
  void launch(const Launch& launch, Stream* stream) override {
    void* args[] = {const_cast<void*>(launch.args)};
    expect(cudaLaunchKernel(kernel_function(launch.kernel), dim3(launch.blocks_x, launch.blocks_y),
                            dim3(static_cast<unsigned>(launch.threads)), args, 0, of(stream)),
           std::string("cudaLaunchKernel of ") + name_of(launch.kernel));
  }
  void multiply(const Multiply& multiply, std::byte* workspace, Bytes bytes, Stream* stream) override {
    products_.run(multiply, workspace, bytes, of(stream));
  }
  std::vector<Algorithm> algorithms(const Multiply& multiply, Bytes workspace, int most) override {
    return products_.algorithms(multiply, workspace, most);
  }
  bool takes(const Multiply& multiply, const Algorithm& algorithm, Bytes workspace) override {
    return products_.takes(multiply, algorithm, workspace);
  }
  std::optional<Bytes> attention_workspace(const AttentionCall& call) override {
    AttentionLibrary* library = attentions();
    return library ? library->workspace(call, selected()) : std::nullopt;
  }
  std::string attention_refusal(const AttentionCall& call) override {
    AttentionLibrary* library = attentions();
    if (!library) return "cuDNN is not there";
    return library->version() + " has no " + (call.backward ? "backward" : "forward") + ": " +
           library->refusal(call, selected());
  }
  void attention(const AttentionCall& call, std::byte* workspace, Stream* stream) override {
    const std::string problem = attentions()->run(call, selected(), workspace, stream);
    if (!problem.empty()) throw DeviceError("cudnnBackendExecute", problem);
  }

 private:
  static std::string bus(int device) {
    char address[32] = {};
    CUDA(cudaDeviceGetPCIBusId, address, sizeof address, device);
    return address;
  }
  // Two GPUs are connected by NVLink if atomic operations of one on the memory of the other are native; over PCIe they are not.
  std::vector<std::string> nvlinks(int device) const {
    std::vector<std::string> all;
    for (int other = 0; other < devices_; ++other) {
      int atomics = 0;
      if (other == device) continue;
      CUDA(cudaDeviceGetP2PAttribute, &atomics, cudaDevP2PAttrNativeAtomicSupported, device, other);
      if (atomics != 0) all.push_back(bus(other));
    }
    return all;
  }

  static int selected() {
    int device = 0;
    CUDA(cudaGetDevice, &device);
    return device;
  }
  AttentionLibrary* attentions() {
    std::call_once(asked_, [this] { attentions_ = open_attention_library(); });
    return attentions_.get();
  }

  int devices_;
  Products products_;
  std::once_flag asked_;
  std::unique_ptr<AttentionLibrary> attentions_;
};

}  // namespace

}  // namespace foreshard::gpu

// KernelsEntry and ModuleEntry (exec/cuda/load_cuda.h).
extern "C" const char* foreshard_cuda_kernels() { return FORESHARD_KERNEL_BUILD; }
extern "C" foreshard::gpu::Runtime* foreshard_cuda_runtime(int version, const char** why) {
  if (version != foreshard::gpu::kModuleVersion) {
    *why = "libforeshard_cuda.so is of another build";
    return nullptr;
  }
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status == cudaErrorInsufficientDriver) {
    *why = "no NVIDIA driver for this CUDA runtime (cudaErrorInsufficientDriver)";
    return nullptr;
  }
  if (status == cudaErrorNoDevice || (status == cudaSuccess && devices == 0)) {
    *why = "the driver sees no NVIDIA GPU (cudaErrorNoDevice)";
    return nullptr;
  }
  if (status != cudaSuccess) {
    *why = cudaGetErrorName(status);
    return nullptr;
  }
  return new foreshard::gpu::CudaRuntime(devices);
}
