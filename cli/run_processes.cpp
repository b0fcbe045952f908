#include "cli/run_processes.h"

#include <cstdlib>

#include "core/ranks.h"
#include "exec/philox.h"

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
       .group = "processes"}};
}

// What every process has to run alike, line by line.
static std::string run_words(const Arguments& arguments, const Plan& plan) {
  std::string words = "version=" FORESHARD_VERSION "\nplan=" + program_hash(plan) + "\n";
  // Of another job on the same port; the words go over the network and into messages, so not the token itself.
  if (const char* job = std::getenv("FORESHARD_JOB"))
    words += std::string("FORESHARD_JOB=") + std::to_string(name_key(job)) + "\n";
  for (const VerbOption& option : run_verb().options)
    if (option.group != "output" && option.group != "processes" && option.name != "PLAN" && arguments.has(option.name))
      words += option.name + "=" + arguments.text(option.name) + "\n";
  return words;
}

std::unique_ptr<ProcessMesh> other_processes(const Arguments& arguments, const Plan& plan, const ExecuteOptions& options) {
  const double wait = arguments.number("--rendezvous", 30, 0.1, 1e6);
  if (arguments.choice("--launcher", "auto", {"auto", "none"}) == "none") return {};
  const auto place = process_place([](const char* name) { return std::getenv(name); });
  if (!place) return {};
  return std::make_unique<ProcessMesh>(
      MeshOptions{.place = *place,
                  .ranks = Ranks(plan).count(),
                  .run = run_words(arguments, plan),
                  .rendezvous = std::chrono::milliseconds(static_cast<std::int64_t>(wait * 1000)),
                  .patience = options.patience});
}

}  // namespace foreshard
