#include "exec/calibrate_processes.h"

#include <algorithm>
#include <chrono>

#include "exec/tcp_communicator.h"

namespace foreshard {

namespace {

constexpr CollectiveKind kKinds[] = {CollectiveKind::AllReduce, CollectiveKind::ReduceScatter, CollectiveKind::AllGather,
                                     CollectiveKind::Broadcast, CollectiveKind::AllToAll};
constexpr std::int64_t kLeast = 4096;
constexpr int kFewest = 5, kMost = 41;
constexpr std::int64_t kVolume = std::int64_t{64} << 20U;  // bytes of all rounds of one size, about

std::vector<int> groups(int processes) {
  std::vector<int> sizes;
  for (int size = 2; size < processes; size *= 2) sizes.push_back(size);
  sizes.push_back(processes);
  return sizes;
}

double median_time(ProcessMesh& mesh, const CollectiveCall& call, bool takes_part) {
  using Clock = std::chrono::steady_clock;
  const Stop stop;
  std::unique_ptr<StreamTask> task;
  if (takes_part) task = TcpCommunicator(mesh, stop, {mesh.process()}).collective(call);
  const int rounds = static_cast<int>(std::clamp<std::int64_t>(kVolume / call.what.bytes.value, kFewest, kMost));
  std::vector<double> times;
  for (int i = 0; i <= rounds; ++i) {
    static_cast<void>(mesh.all_gather(""));
    if (!task) continue;
    const auto before = Clock::now();
    static_cast<void>(task->run(i));
    if (i > 0) times.push_back(std::chrono::duration<double>(Clock::now() - before).count());
  }
  if (times.empty()) return 0;
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return std::max(times[times.size() / 2], 1e-9);
}

}  // namespace

BytesPerSecond CollectiveMeasure::bus_bandwidth() const {
  const double part = static_cast<double>(ranks - 1) / ranks;
  const double factor = kind == CollectiveKind::AllReduce                                     ? 2 * part
                        : kind == CollectiveKind::Broadcast || kind == CollectiveKind::Reduce ? 1
                                                                                              : part;
  return {algorithm_bandwidth().value * factor};
}

std::vector<CollectiveMeasure> measure_collectives(ProcessMesh& mesh, Bytes largest) {
  std::vector<CollectiveMeasure> all;
  std::vector<float> from(static_cast<std::size_t>(largest.value) / sizeof(float), 1.0F), to = from;
  std::int64_t sequence = 0;
  for (const int ranks : groups(mesh.processes()))
    for (const CollectiveKind kind : kKinds)
      for (std::int64_t size = kLeast; size <= largest.value; size *= 4) {
        const std::int64_t unit = ranks * static_cast<std::int64_t>(sizeof(float)), bytes = size / unit * unit;
        CollectiveCall call{
            .what = {.kind = kind, .bytes = {bytes}, .dtype = DType::F32}, .sequence = sequence++, .where = "calibrate"};
        for (std::int32_t r = 0; r < ranks; ++r) call.members.push_back({r});
        const Bytes part{bytes / ranks};
        call.from = {reinterpret_cast<std::byte*>(from.data()), kind == CollectiveKind::AllGather ? part : Bytes{bytes},
                     DType::F32};
        call.to = {reinterpret_cast<std::byte*>(to.data()), kind == CollectiveKind::ReduceScatter ? part : Bytes{bytes},
                   DType::F32};
        const double time = median_time(mesh, call, mesh.process() < ranks);
        if (mesh.process() == 0) all.push_back({.kind = kind, .ranks = ranks, .bytes = {bytes}, .time = {time}});
      }
  return all;
}

void take_collectives(MachineProfile& profile, const std::vector<CollectiveMeasure>& measures) {
  profile.all_reduces.clear();
  double aa = 0, ab = 0, bb = 0, a = 0, b = 0;
  for (const CollectiveMeasure& at : measures) {
    if (at.kind != CollectiveKind::AllReduce) continue;
    profile.all_reduces.push_back({at.ranks, at.bytes, at.time});
    const double steps = 2.0 * (at.ranks - 1);
    const double x = steps / at.time.value, y = steps * static_cast<double>(at.bytes.value) / at.ranks / at.time.value;
    aa += x * x, ab += x * y, bb += y * y, a += x, b += y;
  }
  const double determinant = aa * bb - ab * ab;
  if (determinant <= 0) return;
  profile.link_latency = {std::max((a * bb - b * ab) / determinant, 1e-9)};
  profile.link_bandwidth = {1 / std::max((b * aa - a * ab) / determinant, 1e-13)};
}

}  // namespace foreshard
