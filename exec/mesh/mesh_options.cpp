#include "exec/mesh/mesh_options.h"

namespace foreshard {

int MeshOptions::first_rank(int process) const { return static_cast<int>(std::int64_t{process} * ranks / place.processes); }

int MeshOptions::process_of(RankId rank) const {
  int process = static_cast<int>(std::int64_t{rank.value} * place.processes / ranks);
  while (first_rank(process) > rank.value) --process;
  while (first_rank(process + 1) <= rank.value) ++process;
  return process;
}

std::string MeshOptions::name_of(int process) const {
  const int first = first_rank(process), end = first_rank(process + 1);
  return "process " + std::to_string(process) + " (rank " + std::to_string(first) +
         (end - first > 1 ? " to " + std::to_string(end - 1) : "") + ")";
}

}  // namespace foreshard
