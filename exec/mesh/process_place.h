// Which of several processes this one is, as launchers tell it: torchrun, mpirun (Open MPI, MPICH), srun.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace foreshard {

// Processes of one run; ranks of the plan are dealt to them in order, in parts as equal as can be.
struct ProcessPlace {
  int process = 0, processes = 1;
  std::string address = "127.0.0.1";  // of process 0, where all meet
  int port = 29500;
  int local = 0;  // which of the processes on its machine, where the launcher says so
  bool operator==(const ProcessPlace&) const = default;
};

// `variable`: the environment. The first complete pair counts: RANK / WORLD_SIZE, OMPI_COMM_WORLD_RANK / _SIZE, PMI_RANK /
// PMI_SIZE, SLURM_PROCID / SLURM_NTASKS. MASTER_ADDR (else SLURM_LAUNCH_NODE_IPADDR, else this machine) and FORESHARD_PORT, else
// MASTER_PORT (the one after it where torchrun itself listens at that: TORCHELASTIC_USE_AGENT_STORE=True) say where to meet. Nothing when no launcher speaks or it started one process. Throws Error for values that make no sense.
std::optional<ProcessPlace> process_place(const std::function<const char*(const char*)>& variable);

// What tells this job from another that meets at the same port: FORESHARD_JOB, else the number that the launcher gave the job
// (TORCHELASTIC_RUN_ID, SLURM_JOB_ID with SLURM_STEP_ID, that of Open MPI). The word is hashed, 16 hexadecimal digits; "" when no variable says it.
std::string job_token(const std::function<const char*(const char*)>& variable);
// "torchrun", "Open MPI", "MPICH", "srun": whose variables process_place reads; "" for none.
std::string launcher_name(const std::function<const char*(const char*)>& variable);

}  // namespace foreshard
