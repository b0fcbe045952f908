// ComputeTask: a compute instruction of a plan as a task that enqueues its kernels on a CUDA stream.
#pragma once

#include <algorithm>

#include "exec/cuda/gpu_memory.h"
#include "exec/cuda/gpu_task.h"
#include "exec/cuda/product_choice.h"
#include "exec/cuda_ops/gpu_kernel.h"

namespace foreshard::gpu {

// Bytes of memory outside the arenas for the kernels of one stream. They share it, because they run one after the other.
struct StreamMemory {
  Bytes scratch = {}, workspace = {};  // workspace: of cuBLAS

  // Enlarges the sizes to what this kernel needs.
  void holds(const Kernel& kernel) {
    scratch = std::max(scratch, kernel.scratch);
    if (kernel.multiplies) workspace = kMultiplyWorkspace;
  }
};

// What all compute tasks of a GPU use while they are enqueued. The objects must outlive the tasks.
struct GpuHandles {
  int gpu = 0;
  const ProductChoice& choice;
  const Stop& stop;
};

// One compute instruction. Data that the host prepares for each run (Kernel::staged) lies in pinned memory, from which the kernel copies it
// to the GPU. Before the host prepares the data of the next run, `enqueue` waits until that copy is done.
class ComputeTask : public GpuTask {
 public:
  ComputeTask(GpuHandles of, Compute what, Kernel kernel, std::span<const Operand> reads, std::span<const Operand> writes,
              const OpArguments& arguments)
      : of_(of),
        what_(std::move(what)),
        kernel_(std::move(kernel)),
        reads_(reads.begin(), reads.end()),
        writes_(writes.begin(), writes.end()),
        arguments_(arguments) {}

  // Called once before the first run: allocates the pinned memory, and writes the kernel's constant table to the GPU.
  void open(GpuMemory& memory, EventPool& marks, DeviceBackend& device) {
    staged_ = memory.allocate(Space::PinnedHost, kernel_.staged);
    if (staged_) copied_ = marks.take();
    if (kernel_.table.empty()) return;
    const Bytes bytes = {static_cast<std::int64_t>(kernel_.table.size())};
    table_ = memory.allocate(Space::Device, bytes);
    device.write(table_, kernel_.table.data(), bytes);
  }
  bool repeats() const override { return !kernel_.varies && kernel_.staged == Bytes{}; }
  const Kernel& kernel() const { return kernel_; }
  std::uint64_t layer() const { return arguments_.layer; }
  // Its instruction and operands, as fuse_forward and fuse_backward (exec/cuda_ops/gpu_kernel.h) take them.
  FusedPart part() const { return {what_, reads_, writes_}; }
  // Replaces its kernel and operands: for fusion, before `open`.
  void become(Kernel kernel, std::vector<Operand> reads, std::vector<Operand> writes) {
    kernel_ = std::move(kernel), reads_ = std::move(reads), writes_ = std::move(writes);
  }
  void becomes_nothing() {
    become({.run = [](const Launcher&, const Call&) {}}, {}, {});
  }
  // Appends the matrix products that it will launch to `all`, without launching them. `scratch`: memory of the GPU of `bytes` bytes; a task
  // that needs more appends nothing.
  void products(std::vector<Multiply>& all, std::byte* scratch, Bytes bytes) const {
    if (!kernel_.multiplies || kernel_.scratch > bytes) return;
    kernel_.run(
        Launcher(all),
        {.reads = reads_, .writes = writes_, .scratch = scratch, .staged = nullptr, .table = nullptr, .arguments = arguments_});
  }
  // Bytes of its constant table, which lies outside the arenas.
  Bytes outside() const { return {static_cast<std::int64_t>(kernel_.table.size())}; }

  void enqueue(OnStream& on, int run) override {
    const OpArguments arguments = in_run(arguments_, run);
    if (staged_) {
      while (used_ && !on.runtime.done(copied_)) yield_unless_stopped(of_.stop);
      kernel_.prepare(staged_, arguments);
    }
    kernel_.run(Launcher(on.runtime, on.stream, on.workspace, &of_.choice, of_.gpu), {.reads = reads_,
                                                                                      .writes = writes_,
                                                                                      .scratch = on.scratch,
                                                                                      .staged = staged_,
                                                                                      .table = table_,
                                                                                      .arguments = arguments});
    if (staged_) on.runtime.record(copied_, on.stream);
    used_ = true;
  }

 private:
  GpuHandles of_;
  Compute what_;
  Kernel kernel_;
  std::vector<Operand> reads_, writes_;
  OpArguments arguments_;
  std::byte *staged_ = nullptr, *table_ = nullptr;
  Event* copied_ = nullptr;  // recorded after the kernels of the last run, which copy from `staged_`
  bool used_ = false;
};

}  // namespace foreshard::gpu
