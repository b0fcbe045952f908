#include "cli/calibrate_collectives.h"

#include <cstdlib>
#include <filesystem>
#include <ostream>

#include "cli/table.h"
#include "core/error.h"
#include "core/json.h"
#include "core/plan_words.h"
#include "exec/calibrate.h"
#include "exec/calibrate_processes.h"
#include "exec/process_place.h"

namespace foreshard {

static std::string as_text(const std::vector<CollectiveMeasure>& measures) {
  Table table{.head = {"collective", "ranks", "bytes", "us", "algbw GB/s", "busbw GB/s"}};
  for (const CollectiveMeasure& at : measures)
    table.rows.push_back({word(at.kind), std::to_string(at.ranks), std::to_string(at.bytes.value), plain(at.time.value * 1e6),
                          plain(at.algorithm_bandwidth().value * 1e-9), plain(at.bus_bandwidth().value * 1e-9)});
  return table_text(table);
}

static std::string as_json(const std::vector<CollectiveMeasure>& measures, const MachineProfile& profile) {
  JsonWriter json;
  json.begin_object().field("link_latency", profile.link_latency.value).field("link_bandwidth", profile.link_bandwidth.value);
  json.key("collectives").begin_array();
  for (const CollectiveMeasure& at : measures)
    json.begin_object()
        .field("collective", word(at.kind))
        .field("ranks", at.ranks)
        .field("bytes", at.bytes.value)
        .field("seconds", at.time.value)
        .field("algbw", at.algorithm_bandwidth().value)
        .field("busbw", at.bus_bandwidth().value)
        .end_object();
  return json.end_array().end_object().text();
}

ExitCode calibrate_collectives(const Arguments& arguments, const Console& console) {
  const auto variable = [](const char* name) -> const char* { return std::getenv(name); };
  const auto place = process_place(variable);
  if (!place) throw Error(kCommandLine, "--collectives", "one process", "several, started by mpirun, srun or torchrun");
  const std::int64_t largest = arguments.flag("--quick") ? 1 << 18 : 1 << 24;
  ProcessMesh mesh({.place = *place,
                    .ranks = place->processes,
                    .run = "version=" FORESHARD_VERSION "\ncalibrate=" + std::to_string(largest) + "\n",
                    .job = job_token(variable),
                    .patience = std::chrono::milliseconds(10'000)});
  const std::vector<CollectiveMeasure> measures = measure_collectives(mesh, {largest});
  if (mesh.process() != 0) return ExitCode::Ok;
  const std::string file = arguments.text("--save-profile", "host.profile.json");
  MachineProfile profile{.device = "host", .machine = machine_words()};
  if (std::filesystem::exists(file)) profile = load_machine_profile(file);
  take_collectives(profile, measures);
  write_file(file, to_json(profile));
  if (arguments.flag("--json")) {
    console.out << as_json(measures, profile);
    return ExitCode::Ok;
  }
  console.out << as_text(measures) << "\nlink       " << plain(profile.link_latency.value * 1e6) << " us + bytes / "
              << plain(profile.link_bandwidth.value * 1e-9) << " GB/s, fitted to the all-reduces\nwritten: " << file << "\n";
  return ExitCode::Ok;
}

}  // namespace foreshard
