// Runtime: the GPU functions that the executor needs. The CUDA module implements them with CUDA, cuBLASLt and cuDNN; the tests implement
// them on the CPU. All other code of the executor is the same for both.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/float8.h"
#include "core/plan/plan.h"
#include "exec/cuda/attention_call.h"
#include "exec/cuda/kernel_list.h"

namespace foreshard::gpu {

struct Stream;  // opaque types, defined by the implementation
struct Event;
struct Graph;

// A kernel launch. The call copies the arguments.
struct Launch {
  KernelId kernel = {};
  unsigned blocks_x = 1, blocks_y = 1;
  int threads = 256;
  const void* args = nullptr;
  std::size_t bytes = 0;  // size of the arguments
};

// An operand of a matrix product (Multiply).
struct Matrix {
  std::byte* data = nullptr;
  // Distance in elements from one row to the next, and from the matrix of one product of a batch to the next
  std::int64_t row = 0, step = 0;
  bool transposed = false;  // op() transposes it
  DType dtype = DType::F32;
  // For the factors of a product with DType::F8: the 8-bit format, and a number (fp32, in GPU memory) by which the values are multiplied.
  // Such a product needs a not transposed, b transposed, all sizes multiples of 16, and at most one factor in E5M2.
  Float8 format = Float8::E4M3;
  const std::byte* scale = nullptr;
};
// What the product does with its result x before it is stored. GELU is in tanh form, and only for 16-bit numbers.
enum class Epilogue : std::uint8_t {
  None,
  Gelu,      // x is stored in `aux`, gelu(x) in c
  GeluSlope  // c = x gelu'(aux); not with a bias, and with keep = 0
};
// Sums that the product computes in addition: the gradient of a bias. They overwrite `sums_to`.
enum class Sums : std::uint8_t {
  None,
  OfResult,  // [n]: over the rows of c, before rounding; only with GeluSlope
  OfFactor   // [m]: over the columns of op(a), which has 16-bit numbers; only without epilogue and bias
};
// An algorithm of the library for products of one form, as an opaque cublasLtMatmulAlgo_t. It is valid only for the same version of the
// library.
struct Algorithm {
  std::array<std::uint64_t, 8> words = {};
  // An fp32 product without CUBLAS_COMPUTE_32F_PEDANTIC, because the library has no pedantic algorithm for this shape
  bool relaxed = false;
  bool operator==(const Algorithm&) const = default;
};
// A batch of `count` matrix products: c [m, n] = alpha op(a) op(b) + keep c + bias, row-major, where op(a) is [m, k] and op(b) is [k, n].
// fp32 products are computed in fp32 (not TF32), TF32 products in TF32, products of 16-bit numbers with fp32 sums.
struct Multiply {
  std::int64_t m = 0, n = 0, k = 0, count = 1;
  Matrix a = {}, b = {}, c = {};
  float alpha = 1, beta = 0;
  const std::byte* bias = nullptr;  // [n], in the format of c
  Epilogue epilogue = Epilogue::None;
  std::byte* aux = nullptr;  // [m, n], in the format of c; Gelu writes it, GeluSlope reads it
  std::int64_t aux_row = 0;  // elements from one row of aux to the next, a multiple of 8
  Sums sums = Sums::None;
  std::byte* sums_to = nullptr;          // in the format of c
  const Algorithm* algorithm = nullptr;  // null: the first that the library's heuristic proposes
};

struct Properties {
  std::string device = {}, driver = {}, libraries = {};  // names and versions, for display
  std::string products = {};                             // name and version of the library of matrix products
  Bytes memory = {};
  int capability = 0;  // compute capability times ten: 90
  // PCI address, "0000:1b:00.0"; the same in all processes, unlike the number of the GPU
  std::string bus = {};
  std::vector<int> cpus = {};             // CPUs of its NUMA node; empty: unknown
  std::vector<std::string> nvlinks = {};  // PCI addresses of the other GPUs that it is connected to by NVLink
};

// All functions may be called from any thread. They throw DeviceError with the failing CUDA call and its error code. A failure of work on a
// stream is reported by a later call. Functions that take a stream enqueue work and return at once, except synchronize.
class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual int devices() = 0;                      // number of GPUs
  virtual Properties properties(int device) = 0;  // asks the driver only: creates no CUDA context
  virtual Bytes free_memory(int device) = 0;      // selects the GPU and creates a context there
  // Selects the GPU of this thread (cudaSetDevice); a thread begins with GPU 0. Every function below creates a context on the selected GPU,
  // to which new streams, events and memory belong.
  virtual void select(int device) = 0;
  // Allows kernels on `device` to access the memory of `peer`, in this direction. Returns false if the machine does not support it.
  virtual bool reach(int device, int peer) = 0;

  // Allocates zeroed memory. GPU memory is zeroed by the legacy stream of the GPU, possibly after this function has returned; GpuMemory
  // waits for it.
  virtual std::byte* allocate(Space space, Bytes bytes) = 0;
  virtual void release(Space space, std::byte* memory) = 0;  // ignores errors, so that it can be called after a failure

  // Creates a non-blocking stream on the selected GPU: it is not ordered with the legacy stream. Kernels of an `urgent` stream have
  // priority.
  virtual Stream* open_stream(bool urgent) = 0;
  virtual void close_stream(Stream* stream) = 0;
  virtual Stream* legacy_stream() = 0;  // the legacy default stream of the selected GPU; must not be closed
  virtual Event* make_event(bool timed) = 0;
  virtual void drop_event(Event* event) = 0;

  virtual void record(Event* event, Stream* stream) = 0;  // event and stream belong to the same GPU
  // For the last record before this call; does not wait if there is none
  virtual void wait(Stream* stream, Event* event) = 0;
  virtual bool done(Event* event) = 0;                           // whether the GPU has reached the last record of the event
  virtual bool idle(Stream* stream) = 0;                         // whether the stream is empty
  virtual void synchronize(Stream* stream) = 0;                  // blocks until the stream is empty
  virtual std::int64_t nanoseconds(Event* from, Event* to) = 0;  // between two events with timing that are done

  // Work that this thread enqueues on the stream between the two calls does not run, but becomes a graph; it may not contain a `wait`. The
  // memory and the events that it uses must stay valid as long as the graph is launched.
  virtual void begin_capture(Stream* stream) = 0;
  virtual Graph* end_capture(Stream* stream) = 0;
  virtual void launch(Graph* graph, Stream* stream) = 0;
  virtual void drop_graph(Graph* graph) = 0;

  // A named range of this thread in a profiler (NVTX); ranges may be nested.
  virtual void begin_range(const char* name) = 0;
  virtual void end_range() = 0;

  virtual void fill(std::byte* to, std::byte with, Bytes bytes, Stream* stream) = 0;
  virtual void copy(std::byte* to, const std::byte* from, Bytes bytes, Stream* stream) = 0;  // between any two memories
  virtual void launch(const Launch& launch, Stream* stream) = 0;
  virtual void multiply(const Multiply& multiply, std::byte* workspace, Bytes bytes, Stream* stream) = 0;
  // At most `most` algorithms of the library for this product on the selected GPU, in the order in which its heuristic expects them to be
  // fastest; empty: the library cannot compute it. The data of the operands are not accessed; only their alignment matters.
  virtual std::vector<Algorithm> algorithms(const Multiply& multiply, Bytes workspace, int most) = 0;
  // Whether the algorithm can compute it
  virtual bool takes(const Multiply& multiply, const Algorithm& algorithm, Bytes workspace) = 0;

  // The workspace that cuDNN needs for this attention on the selected GPU. The data of the arrays are not accessed. Nothing: there is no
  // cuDNN, or it does not support this attention; attention_refusal then says why, for display.
  virtual std::optional<Bytes> attention_workspace(const AttentionCall& call) = 0;
  virtual std::string attention_refusal(const AttentionCall& call) = 0;
  virtual void attention(const AttentionCall& call, std::byte* workspace, Stream* stream) = 0;
};

// A named range in a profiler for the life of this object.
class Range {
 public:
  Range(Runtime& runtime, const std::string& name) : runtime_(runtime) { runtime.begin_range(name.c_str()); }
  ~Range() { runtime_.end_range(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  Runtime& runtime_;
};

inline constexpr Bytes kMultiplyWorkspace{std::int64_t{32} << 20U};  // workspace for cuBLASLt, one per stream

}  // namespace foreshard::gpu
