// The few calls of a GPU that the executor needs: the module implements them with CUDA and cuBLASLt, the tests with queues of their
// own on the host. Everything above this line is the same code in both.
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

struct Stream;  // opaque; of the implementation
struct Event;
struct Graph;

// A kernel with its arguments, which are copied by the call.
struct Launch {
  KernelId kernel = {};
  unsigned blocks_x = 1, blocks_y = 1;
  int threads = 256;
  const void* args = nullptr;
  std::size_t bytes = 0;  // of the arguments
};

// c [m, n] = alpha op(a) op(b) + keep c + bias, row-major; op(a) is [m, k], op(b) is [k, n]; `count` of them, each operand `step` elements
// after the one before. Products of fp32 are taken in fp32 (no TF32), of TF32 in TF32, of 16-bit numbers with sums in fp32.
struct Matrix {
  std::byte* data = nullptr;
  std::int64_t row = 0, step = 0;  // elements from one row, and from one product, to the next
  bool transposed = false;
  DType dtype = DType::F32;
  // Of F8, factors only: the format, and on the GPU what its numbers are multiplied by, an fp32 number. Then a is as it lies, b is transposed, all sizes
  // are multiples of 16, and one of the two is E4M3.
  Float8 format = Float8::E4M3;
  const std::byte* scale = nullptr;
};
// What becomes of the sum x before it is stored. GELU is that in tanh form, and of 16-bit numbers only.
enum class Epilogue : std::uint8_t {
  None,
  Gelu,      // x is stored in `aux`, gelu(x) in c
  GeluSlope  // c = x gelu'(aux); without bias, nothing is kept
};
// Sums that the product makes beside: the gradient of a bias. They take the place of what was there.
enum class Sums : std::uint8_t {
  None,
  OfResult,  // [n]: over the rows of c, before they are rounded; with GeluSlope
  OfFactor   // [m]: over the columns of op(a), which are of 16 bits
};
// One of the ways in which the library takes products of a form, in its own words: of use to the same version of it.
struct Algorithm {
  std::array<std::uint64_t, 8> words = {};
  bool relaxed = false;  // fp32 that is not pedantic, of a shape that has no other
  bool operator==(const Algorithm&) const = default;
};
struct Multiply {
  std::int64_t m = 0, n = 0, k = 0, count = 1;
  Matrix a = {}, b = {}, c = {};
  float alpha = 1, keep = 0;
  const std::byte* bias = nullptr;  // [n], of the type of c
  Epilogue epilogue = Epilogue::None;
  std::byte* aux = nullptr;  // [m, n], of the type of c, written by Gelu and read by GeluSlope
  std::int64_t aux_row = 0;  // elements from one row to the next: a multiple of 8
  Sums sums = Sums::None;
  std::byte* sums_to = nullptr;          // of the type of c
  const Algorithm* algorithm = nullptr;  // none: the first that the library names
};

struct Properties {
  std::string device = {}, driver = {}, libraries = {};
  std::string products = {};  // the library of products and its version
  Bytes memory = {};
  std::string bus = {};                   // address, "0000:1b:00.0": another process may know the GPU by another number
  std::vector<int> cpus = {};             // of the host, near it; none: not known
  std::vector<std::string> nvlinks = {};  // addresses of the other GPUs here that it reaches by NVLink
};

// All calls may come from any thread. They throw DeviceError with the call and its code; a failure of something that runs on a
// stream is told by a later call. Calls that take a stream return at once.
class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual int devices() = 0;
  virtual Properties properties(int device) = 0;  // of the driver: makes no context
  virtual Bytes free_memory(int device) = 0;      // makes a context there, and selects it
  // For the calls of this thread, which begins on GPU 0: every call below makes a context on the GPU that is selected, and streams, events and memory belong to it.
  virtual void select(int device) = 0;
  // From now on kernels on `device` may use the memory of `peer`; false: this machine does not let them.
  virtual bool reach(int device, int peer) = 0;

  // Of a GPU: zeroed by its legacy stream, maybe later than this call returns. See GpuMemory.
  virtual std::byte* allocate(Space space, Bytes bytes) = 0;
  virtual void release(Space space, std::byte* memory) = 0;  // of any state of the device; tells nothing

  // Streams of the selected GPU, which do not order themselves with its legacy stream. Of two kernels that could begin, that of an urgent one does.
  virtual Stream* open_stream(bool urgent) = 0;
  virtual void close_stream(Stream* stream) = 0;
  virtual Stream* legacy_stream() = 0;  // of the selected GPU; never closed
  virtual Event* make_event(bool timed) = 0;
  virtual void drop_event(Event* event) = 0;

  virtual void record(Event* event, Stream* stream) = 0;  // both of one GPU
  virtual void wait(Stream* stream, Event* event) = 0;    // what was recorded before this call; never recorded: does not block
  virtual bool done(Event* event) = 0;
  virtual bool idle(Stream* stream) = 0;
  virtual void synchronize(Stream* stream) = 0;
  virtual std::int64_t nanoseconds(Event* from, Event* to) = 0;  // both timed and done

  // What is put on the stream between the two, by this thread alone and without a wait, does not run but becomes a graph; it needs the memory and
  // the events that it names as long as it is launched.
  virtual void begin_capture(Stream* stream) = 0;
  virtual Graph* end_capture(Stream* stream) = 0;
  virtual void launch(Graph* graph, Stream* stream) = 0;
  virtual void drop_graph(Graph* graph) = 0;

  // What this thread does until the end is called that in a profiler; ranges nest.
  virtual void begin_range(const char* name) = 0;
  virtual void end_range() = 0;

  virtual void fill(std::byte* to, std::byte with, Bytes bytes, Stream* stream) = 0;
  virtual void copy(std::byte* to, const std::byte* from, Bytes bytes, Stream* stream) = 0;  // from any space to any other
  virtual void launch(const Launch& launch, Stream* stream) = 0;
  virtual void multiply(const Multiply& multiply, std::byte* workspace, Bytes bytes, Stream* stream) = 0;
  // For the selected GPU, what the library expects to be quickest first; none: it cannot do that. Of the operands only where they begin is looked at.
  virtual std::vector<Algorithm> algorithms(const Multiply& multiply, Bytes workspace, int most) = 0;
  virtual bool takes(const Multiply& multiply, const Algorithm& algorithm, Bytes workspace) = 0;

  // The memory that an attention of these sizes, strides and options wants on the selected GPU beside its arrays; their data are not looked at. None:
  // there is no such library, or it does not do that.
  virtual std::optional<Bytes> attention_workspace(const AttentionCall& call) = 0;
  virtual void attention(const AttentionCall& call, std::byte* workspace, Stream* stream) = 0;
};

class Range {
 public:
  Range(Runtime& runtime, const std::string& name) : runtime_(runtime) { runtime.begin_range(name.c_str()); }
  ~Range() { runtime_.end_range(); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  Runtime& runtime_;
};

inline constexpr Bytes kMultiplyWorkspace{std::int64_t{32} << 20U};  // what cuBLASLt is given per stream

}  // namespace foreshard::gpu
