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
  settle_attention();
  std::vector<JoinedTasks> all;
  for (std::size_t r = 0; fuses_ && r < rows.size(); ++r)
    for (std::size_t at = 0; at + 1 < rows[r].members.size();) {
      std::optional<JoinedTasks> joined = join_tasks(rows[r], at, runtime_);
      at += joined ? joined->count : 1;
      if (joined) joined->row = r, all.push_back(*joined);
    }
  choose_algorithms();
  return all;
}

// All instructions of a layer's attention are computed by the library, or none: the two draw different masks for dropout. What one
// instruction cannot show when its kernel is made is known here.
void CudaDevice::settle_attention() {
  std::map<std::uint64_t, std::string> own;  // layer -> why
  const auto is_attention = [](const ComputeTask& task) { return is<ops::Attention>(task.part().what.op); };
  for (const auto& [stream, task] : tasks_)
    if (is_attention(*task) && !task->kernel().own_attention.empty())
      own.try_emplace(task->layer(), task->kernel().own_attention);
  for (const auto& [stream, task] : tasks_) {
    const auto found = own.find(task->layer());
    if (found == own.end() || !is_attention(*task) || !task->kernel().own_attention.empty()) continue;
    const FusedPart part = task->part();
    Kernel kernel = make_kernel(part.what, part.reads, part.writes, {});
    kernel.own_attention = found->second;
    task->become(std::move(kernel), {part.reads.begin(), part.reads.end()}, {part.writes.begin(), part.writes.end()});
  }
}

std::map<std::string, std::set<std::uint64_t>> CudaDevice::attention() const {
  std::map<std::string, std::set<std::uint64_t>> layers;
  for (const auto& [stream, task] : tasks_)
    if (is<ops::Attention>(task->part().what.op)) layers[task->kernel().own_attention].insert(task->layer());
  return layers;
}

std::vector<std::string> attention_notes(const std::vector<const CudaDevice*>& devices) {
  std::map<std::string, std::set<std::uint64_t>> layers;
  for (const CudaDevice* device : devices)
    for (auto& [why, of_device] : device->attention()) layers[why].insert(of_device.begin(), of_device.end());
  std::vector<std::string> notes;
  for (const auto& [why, all] : layers)
    notes.push_back("attention of " + std::to_string(all.size()) + (all.size() == 1 ? " layer: " : " layers: ") +
                    (why.empty() ? "cuDNN's" : "own kernels, because " + why));
  return notes;
}

// Chooses the algorithms of all products whose operands lie in the arenas (or in scratch memory). Others are left to the library.
void CudaDevice::choose_algorithms() {
  if (!choice_.asks()) return;
  GpuMemory memory(runtime_);
  std::byte* scratch = memory.allocate(Space::Device, kScratch);
  std::vector<Multiply> products;
  for (const auto& [stream, task] : tasks_) task->products(products, scratch, kScratch);
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
