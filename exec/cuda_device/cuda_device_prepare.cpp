// What CudaDevice does when all tasks are made and before the first step: it fuses tasks of a row, and chooses the algorithms of matrix
// products.
#include "exec/cuda_device/cuda_device.h"
#include "exec/cuda_device/joined_rows.h"

namespace foreshard::gpu {

namespace {

constexpr Bytes kScratch{std::int64_t{16} << 20U};  // stands in for the scratch memory of the streams, which is allocated later

}  // namespace

std::vector<JoinedTasks> CudaDevice::prepare(std::span<const TaskRow> rows) {
  enter();
  std::vector<JoinedTasks> all;
  for (std::size_t r = 0; fuses_ && r < rows.size(); ++r)
    for (std::size_t at = 0; at + 1 < rows[r].members.size();) {
      std::optional<JoinedTasks> joined = join_tasks(rows[r], at, runtime_, channel(rows[r].stream).needs);
      at += joined ? joined->count : 1;
      if (joined) joined->row = r, all.push_back(*joined);
    }
  choose_algorithms();
  return all;
}

// Chooses the algorithms of all products whose operands lie in the arenas (or in scratch memory). Others are left to the library.
void CudaDevice::choose_algorithms() {
  if (!choice_.asks()) return;
  GpuMemory memory(runtime_);
  std::byte* scratch = memory.allocate(Space::Device, kScratch);
  std::vector<Multiply> products;
  for (const ComputeTask* task : tasks_) task->products(products, scratch, kScratch);
  const auto here = [&](const ProductRange& range) {
    const auto in = [&](const std::byte* begin, Bytes bytes) {
      return range.begin >= begin && range.end <= begin + bytes.value;
    };
    return in(scratch, kScratch) ||
           std::any_of(arenas_.begin(), arenas_.end(), [&](const auto& arena) { return in(arena.first, arena.second); });
  };
  std::erase_if(products, [&](const Multiply& product) {
    const std::vector<ProductRange> ranges = ranges_of(product);
    return !std::all_of(ranges.begin(), ranges.end(), here);
  });
  choice_.decide(gpu_, products);
}

}  // namespace foreshard::gpu
