#include "exec/cuda_checks/calibrate_bench.h"

namespace foreshard::gpu {

// The L2 of today's GPUs has up to 128 MiB; a GPU with little memory has a small one.
Bench::Bench(Runtime& runtime, int times, std::chrono::milliseconds lasting)
    : runtime_(runtime), rows_(times), lasting_(lasting), memory_(runtime), times_(runtime, 0, true) {
  runtime.select(0);
  stream_ = runtime.open_stream(false);
  timing_ = event_overhead(runtime, times_, stream_);
  other_bytes_ = {std::min(std::int64_t{256} << 20U, runtime.properties(0).memory.value / 256)};
  other_ = memory_.allocate(Space::Device, other_bytes_);
}

// The first elements come from the host; the rest are copies of them.
void Bench::fill_random(const Operand& operand) {
  const std::int64_t each = size_of(operand.dtype).value, bytes = operand.elements * each;
  if (operand.dtype == DType::I32) return runtime_.fill(operand.data, std::byte{0}, {bytes}, stream_);
  const std::int64_t drawn = std::min(operand.elements, std::int64_t{1} << 18U);
  StoredArray& numbers = numbers_[operand.dtype];
  if (numbers.size() < drawn) numbers = random_array(drawn, 1, operand.dtype);
  runtime_.copy(operand.data, numbers.operand().data, {drawn * each}, stream_);
  for (std::int64_t done = drawn * each; done < bytes; done *= 2)
    runtime_.copy(operand.data + done, operand.data, {std::min(done, bytes - done)}, stream_);
  runtime_.synchronize(stream_);
}

}  // namespace foreshard::gpu
