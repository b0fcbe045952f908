#include "cli/parts/run_processes.h"

#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <ostream>

#include "cli/job/notes.h"
#include "core/plan/ranks.h"
#include "exec/calibrate/calibrate_groups.h"
#include "exec/mesh/process_place.h"

namespace foreshard {

std::vector<VerbOption> process_options() {
  return {
      {.name = "--launcher",
       .value = "HOW",
       .help = "auto: the ranks are dealt to the processes that mpirun, srun or torchrun started; none: all are threads here",
       .group = "processes"},
      {.name = "--rendezvous",
       .value = "S",
       .help = "seconds in which all processes have to meet at MASTER_ADDR:MASTER_PORT (30)",
       .group = "processes"},
      {.name = "--log", .help = "every process tells on standard error how they meet and why they stop", .group = "processes"}};
}

// A process without a sign of life for this long counts as dead. Processes send signs of life also while their GPUs work.
static constexpr std::chrono::milliseconds kLongestSilence{30'000};

// All that must be equal in every process, one item per line.
static std::string run_words(const Arguments& arguments, const Plan& plan, const std::string& device) {
  std::string words = "version=" FORESHARD_VERSION "\nplan=" + program_hash(plan) + "\ndevice=" + device + "\n";
  for (const VerbOption& option : run_verb().options)
    if (option.group != "output" && option.group != "processes" && option.name != "PLAN" && option.name != "--device" &&
        arguments.has(option.name))
      words += option.name + "=" + arguments.text(option.name) + "\n";
  return words;
}

std::unique_ptr<ProcessMesh> other_processes(const Arguments& arguments, const Plan& plan, const ExecuteOptions& options,
                                             const std::string& device, const Console& console) {
  const double wait = arguments.number("--rendezvous", 30, 0.1, 1e6);
  const bool none = arguments.choice("--launcher", "auto", {"auto", "none"}) == "none";
  const auto variable = [](const char* name) -> const char* { return std::getenv(name); };
  const auto place = none ? std::nullopt : process_place(variable);
  if (!place) {
    for (const char* option : {"--rendezvous", "--log"})
      if (arguments.has(option))
        say(arguments, console, std::string(option) + " changes nothing here: all ranks are threads of this process");
    return {};
  }
  MeshOptions mesh{.place = *place,
                   .ranks = Ranks(plan).count(),
                   .run = run_words(arguments, plan, device),
                   .job = job_token(variable),
                   .rendezvous = std::chrono::milliseconds(static_cast<std::int64_t>(wait * 1000)),
                   .patience = std::min(options.patience, kLongestSilence)};
  if (arguments.flag("--log"))
    mesh.log = [&err = console.err, own = "[process " + std::to_string(place->process) + "] "](const std::string& event) {
      err << own + event + "\n" << std::flush;
    };
  return std::make_unique<ProcessMesh>(mesh);
}

int ranks_of_this_machine(ProcessMesh* mesh, const Plan& plan) {
  if (!mesh) return Ranks(plan).count();
  const std::vector<std::string> nodes = mesh->all_gather(this_node(std::getenv("FORESHARD_NODE")));
  int ranks = 0;
  for (int process = 0; process < mesh->processes(); ++process)
    if (nodes[static_cast<std::size_t>(process)] == nodes[static_cast<std::size_t>(mesh->process())])
      ranks += mesh->first_rank(process + 1) - mesh->first_rank(process);
  return ranks;
}

int usable_cores() {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof cores, &cores) == 0 ? std::max(1, CPU_COUNT(&cores)) : 1;
}

}  // namespace foreshard
