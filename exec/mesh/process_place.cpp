#include "exec/mesh/process_place.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>

#include "core/base/error.h"
#include "exec/base/philox.h"

namespace foreshard {

namespace {

constexpr int kMostProcesses = 65536;

int number(const char* name, const char* text, int least, int most) {
  int value = 0;
  const char* end = text + std::strlen(text);
  const auto [stopped, problem] = std::from_chars(text, end, value);
  if (problem != std::errc() || stopped != end || value < least || value > most)
    throw Error("environment", name, "\"" + std::string(text) + "\"",
                "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return value;
}

struct Launcher {
  const char *name, *process, *processes, *local;
};
constexpr std::array<Launcher, 4> kLaunchers = {
    {{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
     {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
     {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
     {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"}}};

int port_of(const std::function<const char*(const char*)>& variable, int otherwise) {
  constexpr int kMost = 65535;
  if (const char* port = variable("FORESHARD_PORT")) return number("FORESHARD_PORT", port, 1, kMost);
  const char* port = variable("MASTER_PORT");
  if (!port) return otherwise;
  const int found = number("MASTER_PORT", port, 1, kMost);
  const char* store = variable("TORCHELASTIC_USE_AGENT_STORE");  // torchrun itself listens at MASTER_PORT
  if (!store || std::strcmp(store, "True") != 0) return found;
  return found == kMost ? found - 1 : found + 1;
}

}  // namespace

std::optional<ProcessPlace> process_place(const std::function<const char*(const char*)>& variable) {
  for (const Launcher& launcher : kLaunchers) {
    const char *own = variable(launcher.process), *all = variable(launcher.processes);
    if (!own || !all) continue;
    ProcessPlace place{.processes = number(launcher.processes, all, 1, kMostProcesses)};
    place.process = number(launcher.process, own, 0, place.processes - 1);
    if (place.processes == 1) return {};
    const char* address = variable("MASTER_ADDR");
    if (!address) address = variable("SLURM_LAUNCH_NODE_IPADDR");
    if (address && *address) place.address = address;
    place.port = port_of(variable, place.port);
    if (const char* local = variable(launcher.local)) place.local = number(launcher.local, local, 0, place.processes - 1);
    return place;
  }
  return {};
}

std::string launcher_name(const std::function<const char*(const char*)>& variable) {
  for (const Launcher& launcher : kLaunchers)
    if (variable(launcher.process) && variable(launcher.processes)) return launcher.name;
  return "";
}

std::string job_token(const std::function<const char*(const char*)>& variable) {
  const auto word = [&](const char* name) {
    const char* found = variable(name);
    return std::string(found ? found : "");
  };
  std::string job = word("FORESHARD_JOB");
  const std::string launcher = launcher_name(variable);
  if (job.empty() && launcher == "torchrun") job = word("TORCHELASTIC_RUN_ID");
  if (job.empty() && launcher == "Open MPI") job = word("PMIX_NAMESPACE");
  if (job.empty() && launcher == "srun" && !word("SLURM_JOB_ID").empty())
    job = word("SLURM_JOB_ID") + "." + word("SLURM_STEP_ID");
  if (job.empty()) return "";
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(name_key(job)));
  return digits;
}

}  // namespace foreshard
