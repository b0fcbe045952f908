// MPI_Allreduce of fp32: one line per size, bytes, best and median microseconds. Compiled by run.sh with mpicxx; no part of the build.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <vector>

int main(int count, char** words) {
  MPI_Init(&count, &words);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (long bytes = 1 << 20; bytes <= 64 << 20; bytes *= 4) {
    std::vector<float> block(static_cast<std::size_t>(bytes) / sizeof(float), 1.0F), sums = block;
    const int rounds = static_cast<int>(std::clamp((256L << 20) / bytes, 7L, 101L));
    std::vector<double> times;
    for (int i = 0; i < rounds + 2; ++i) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double before = MPI_Wtime();
      MPI_Allreduce(block.data(), sums.data(), static_cast<int>(block.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      if (i >= 2) times.push_back(MPI_Wtime() - before);
    }
    std::sort(times.begin(), times.end());
    if (rank == 0) std::printf("%ld %.1f %.1f\n", bytes, times.front() * 1e6, times[times.size() / 2] * 1e6);
  }
  MPI_Finalize();
  return 0;
}
