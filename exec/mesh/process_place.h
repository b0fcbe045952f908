// Which of the processes of a run this one is, from the environment variables of its launcher: torchrun, mpirun (Open MPI, MPICH) or srun.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace foreshard {

// The number of this process and of all processes, and where process 0 listens for the others.
struct ProcessPlace {
  int process = 0, processes = 1;
  std::string address = "127.0.0.1";  // of process 0
  int port = 29500;
  int local = 0;  // number of this process among those of its machine, if the launcher sets it; else 0
  bool operator==(const ProcessPlace&) const = default;
};

// `variable`: value of an environment variable, null if it is not set. The first pair of which both variables are set is used:
//   torchrun  RANK, WORLD_SIZE
//   Open MPI  OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE
//   MPICH     PMI_RANK, PMI_SIZE
//   srun      SLURM_PROCID, SLURM_NTASKS
// The address is MASTER_ADDR, else SLURM_LAUNCH_NODE_IPADDR, else 127.0.0.1. The port is FORESHARD_PORT, else MASTER_PORT, else 29500; with
// TORCHELASTIC_USE_AGENT_STORE=True it is MASTER_PORT + 1, because torchrun itself listens at MASTER_PORT. Returns nothing if no pair is
// set or there is one process. Throws Error for a value that is not a number or out of range.
std::optional<ProcessPlace> process_place(const std::function<const char*(const char*)>& variable);

// Identifies this job, so that two jobs at the same port do not mix: a hash, as 16 hexadecimal digits, of FORESHARD_JOB, else of the job
// number of the launcher (TORCHELASTIC_RUN_ID; PMIX_NAMESPACE of Open MPI; SLURM_JOB_ID with SLURM_STEP_ID). "" if none of them is set.
std::string job_token(const std::function<const char*(const char*)>& variable);
// The launcher whose variables process_place reads: "torchrun", "Open MPI", "MPICH" or "srun"; "" if there is none.
std::string launcher_name(const std::function<const char*(const char*)>& variable);

}  // namespace foreshard
