// A compute instruction on a stream. Included by the files of CudaDevice only.
#pragma once

#include "exec/cuda/cuda_device.h"

namespace foreshard::gpu {

// One compute instruction. What the host makes for a run waits in pinned memory until the copy of the run before has been made.
class CudaDevice::ComputeTask : public GpuTask {
 public:
  ComputeTask(CudaDevice& device, Compute what, Kernel kernel, std::span<const Operand> reads, std::span<const Operand> writes,
              const OpArguments& arguments)
      : device_(device),
        what_(std::move(what)),
        kernel_(std::move(kernel)),
        reads_(reads.begin(), reads.end()),
        writes_(writes.begin(), writes.end()),
        arguments_(arguments) {}

  // Before the first run.
  void open(GpuMemory& memory) {
    staged_ = memory.allocate(Space::PinnedHost, kernel_.staged);
    if (staged_) copied_ = device_.marks_.take();
    if (kernel_.table.empty()) return;
    const Bytes bytes = {static_cast<std::int64_t>(kernel_.table.size())};
    table_ = memory.allocate(Space::Device, bytes);
    device_.write(table_, kernel_.table.data(), bytes);
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
  // The products that it will take; `scratch`: memory of the GPU of so many bytes.
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
      while (used_ && !on.runtime.done(copied_)) device_.yield();
      kernel_.prepare(staged_, arguments);
    }
    kernel_.run(Launcher(on.runtime, on.stream, on.workspace, &device_.choice_, device_.gpu_), {.reads = reads_,
                                                                                                .writes = writes_,
                                                                                                .scratch = on.scratch,
                                                                                                .staged = staged_,
                                                                                                .table = table_,
                                                                                                .arguments = arguments});
    if (staged_) on.runtime.record(copied_, on.stream);
    used_ = true;
  }

 private:
  CudaDevice& device_;
  Compute what_;
  Kernel kernel_;
  std::vector<Operand> reads_, writes_;
  OpArguments arguments_;
  std::byte *staged_ = nullptr, *table_ = nullptr;
  Event* copied_ = nullptr;
  bool used_ = false;
};

}  // namespace foreshard::gpu
