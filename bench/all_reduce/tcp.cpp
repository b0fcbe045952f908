// All-reduce of fp32 over the processes that a launcher started, by the executor's TCP communicator: one line per size, as mpi.cpp prints it.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "exec/communicator/tcp_communicator.h"
#include "exec/mesh/process_mesh.h"
#include "exec/mesh/process_place.h"

namespace {

using namespace foreshard;
using Clock = std::chrono::steady_clock;

// At a time on the clock of their machine that process 0 names: who leaves a barrier first waits for the others, as MPI_Barrier has them leave
// within a microsecond.
void start_together(ProcessMesh& mesh) {
  const std::int64_t soon = (Clock::now() + std::chrono::microseconds(500)).time_since_epoch().count();
  const Clock::time_point begin{Clock::duration(std::stoll(mesh.all_gather(std::to_string(soon))[0]))};
  while (Clock::now() < begin) std::this_thread::yield();
}

}  // namespace

int main() {
  const auto place = process_place([](const char* name) -> const char* { return std::getenv(name); });
  if (!place) return std::fprintf(stderr, "start it with mpirun\n"), 1;
  const auto begin = Clock::now();
  ProcessMesh mesh({.place = *place, .ranks = place->processes});
  static_cast<void>(mesh.all_gather(""));
  if (place->process == 0)
    std::printf("# %d processes met in %.3f s\n", place->processes,
                std::chrono::duration<double>(Clock::now() - begin).count());
  Stop stop;
  for (std::int64_t bytes = 1 << 20; bytes <= 64 << 20; bytes *= 4) {
    std::vector<float> block(static_cast<std::size_t>(bytes) / sizeof(float), 1.0F), sums = block;
    CollectiveCall call{.what = {.kind = CollectiveKind::AllReduce, .bytes = {bytes}, .dtype = DType::F32}, .sequence = bytes};
    for (std::int32_t r = 0; r < place->processes; ++r) call.members.push_back({r});
    call.from = {reinterpret_cast<std::byte*>(block.data()), {bytes}, DType::F32};
    call.to = {reinterpret_cast<std::byte*>(sums.data()), {bytes}, DType::F32};
    const auto task = TcpCommunicator(mesh, stop, {place->process}).collective(call);
    const int rounds = static_cast<int>(std::clamp<std::int64_t>((256 << 20) / bytes, 7, 101));
    std::vector<double> times;
    for (int i = 0; i < rounds + 2; ++i) {
      start_together(mesh);
      const auto before = Clock::now();
      static_cast<void>(task->run(i));
      if (i >= 2) times.push_back(std::chrono::duration<double>(Clock::now() - before).count());
    }
    if (sums.back() != static_cast<float>(place->processes)) return std::fprintf(stderr, "wrong sum\n"), 1;
    std::sort(times.begin(), times.end());
    if (place->process == 0)
      std::printf("%lld %.1f %.1f\n", static_cast<long long>(bytes), times.front() * 1e6, times[times.size() / 2] * 1e6);
  }
  return 0;
}
