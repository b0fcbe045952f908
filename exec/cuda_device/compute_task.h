// A compute instruction on a stream.
#pragma once

#include <algorithm>

#include "exec/cuda/gpu_memory.h"
#include "exec/cuda/gpu_task.h"
#include "exec/cuda/product_choice.h"
#include "exec/cuda_ops/gpu_kernel.h"

namespace foreshard::gpu {

// Memory beside the arenas that the kernels of a stream share, for they run one after the other.
struct StreamMemory {
  Bytes scratch = {}, workspace = {};

  void holds(const Kernel& kernel) {
    scratch = std::max(scratch, kernel.scratch);
    if (kernel.multiplies) workspace = kMultiplyWorkspace;
  }
};

// What the tasks of a GPU ask while they are enqueued.
struct OfGpu {
  int gpu = 0;
  const ProductChoice& choice;
  const Stop& stop;
};

// One compute instruction. What the host makes for a run waits in pinned memory until the copy of the run before has been made.
class ComputeTask : public GpuTask {
 public:
  ComputeTask(OfGpu of, Compute what, Kernel kernel, std::span<const Operand> reads, std::span<const Operand> writes,
              const OpArguments& arguments)
      : of_(of),
        what_(std::move(what)),
        kernel_(std::move(kernel)),
        reads_(reads.begin(), reads.end()),
        writes_(writes.begin(), writes.end()),
        arguments_(arguments) {}

  // Before the first run.
  void open(GpuMemory& memory, EventPool& marks, DeviceBackend& device) {
    staged_ = memory.allocate(Space::PinnedHost, kernel_.staged);
    if (staged_) copied_ = marks.take();
    if (kernel_.table.empty()) return;
    const Bytes bytes = {static_cast<std::int64_t>(kernel_.table.size())};
    table_ = memory.allocate(Space::Device, bytes);
    device.write(table_, kernel_.table.data(), bytes);
  }
  bool repeats() const override { return !kernel_.varies && kernel_.staged == Bytes{}; }
  // Of a task that is part of a row.
  FusedPart part() const { return {what_, reads_, writes_}; }
  // From now on it does this, with these operands.
  void become(Kernel kernel, std::vector<Operand> reads, std::vector<Operand> writes) {
    kernel_ = std::move(kernel), reads_ = std::move(reads), writes_ = std::move(writes);
  }
  void becomes_nothing() {
    become({.run = [](const Launcher&, const Call&) {}}, {}, {});
  }
  // The products that it will take; `scratch`: memory of the GPU, its size in bytes.
  void products(std::vector<Multiply>& all, std::byte* scratch, Bytes bytes) const {
    if (!kernel_.multiplies || kernel_.scratch > bytes) return;
    kernel_.run(
        Launcher(all),
        {.reads = reads_, .writes = writes_, .scratch = scratch, .staged = nullptr, .table = nullptr, .arguments = arguments_});
  }
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
  OfGpu of_;
  Compute what_;
  Kernel kernel_;
  std::vector<Operand> reads_, writes_;
  OpArguments arguments_;
  std::byte *staged_ = nullptr, *table_ = nullptr;
  Event* copied_ = nullptr;
  bool used_ = false;
};

}  // namespace foreshard::gpu
