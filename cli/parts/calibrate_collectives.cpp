#include "cli/parts/calibrate_collectives.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <set>
#include <thread>

#include "cli/program/table.h"
#include "core/base/error.h"
#include "core/json/json.h"
#include "core/plan/plan_words.h"
#include "exec/calibrate/calibrate.h"
#include "exec/calibrate/calibrate_collectives.h"
#include "exec/cuda/load_cuda.h"
#include "exec/cuda_checks/calibrate_nccl.h"
#include "exec/mesh/process_place.h"

namespace foreshard {

using Measures = std::vector<CollectiveMeasure>;

static const char* variable(const char* name) { return std::getenv(name); }

static std::string as_text(const Measures& measures) {
  Table table{.head = {"collective", "algorithm", "link", "nodes", "ranks", "bytes", "us", "algbw GB/s", "busbw GB/s"}};
  std::string fitted;
  std::set<MeasuredLink> links;
  for (const CollectiveMeasure& at : measures) {
    table.rows.push_back({word(at.kind), word_of(at.algorithm), word_of(at.link), std::to_string(at.nodes),
                          std::to_string(at.ranks), std::to_string(at.bytes.value), plain(at.time.value * 1e6),
                          plain(at.algorithm_bandwidth().value * 1e-9), plain(at.bus_bandwidth().value * 1e-9)});
    links.insert(at.link);
  }
  for (const MeasuredLink link : links)
    if (const auto fit = fitted_link(measures, link))
      fitted += "link " + word_of(link) + ": " + plain(fit->latency.value * 1e6) + " us + bytes / " +
                plain(fit->bandwidth.value * 1e-9) + " GB/s, fitted to the all-reduces\n";
  return table_text(table) + "\n" + fitted;
}

static std::string as_json(const Measures& measures, const MachineProfile& profile) {
  JsonWriter json;
  json.begin_object().field("link_latency", profile.link_latency.value).field("link_bandwidth", profile.link_bandwidth.value);
  write_collectives(json, measures);
  return json.end_object().text();
}

static std::optional<MeasuredLink> asked_link(const Arguments& arguments) {
  if (!arguments.has("--link-class")) return {};
  const std::string chosen = arguments.choice("--link-class", "", {"process", "node", "nvlink", "pcie"});
  const auto& known = measured_links();
  return static_cast<MeasuredLink>(std::find(known.begin(), known.end(), chosen) - known.begin());
}

// Writes into an existing profile of the same device and keeps its other entries.
static MachineProfile earlier_profile(const std::string& file, const std::string& device, bool named,
                                      const std::string& machine) {
  if (!std::filesystem::exists(file)) return {.device = device, .machine = machine};
  MachineProfile profile = load_machine_profile(file);
  const bool gpu = profile.device != "host";
  if (named ? profile.device != device : gpu != (device != "host"))
    throw Error(file, "device", "\"" + profile.device + "\"",
                "\"" + device + "\", which is measured (--save-profile names another file)");
  return profile;
}

namespace {

// The devices and processes that are measured.
struct Bench {
  std::unique_ptr<gpu::Runtime> cuda = {};  // none: the host
  std::unique_ptr<nccl::Library> nccl = {};
  std::unique_ptr<ProcessMesh> mesh = {};  // none: one process
  int ranks = 2;                           // of all processes
  Bytes largest = {};
  MeasuredAlgorithm algorithm = MeasuredAlgorithm::Direct;
};

}  // namespace

static void open_gpus(Bench& bench) {
  bench.cuda = load_cuda();
  bench.nccl = nccl::open_library(variable);
  bench.algorithm = gpu::algorithm_of(variable("NCCL_ALGO"));
}

static void meet(Bench& bench, const ProcessPlace& place) {
  const std::string run = "version=" FORESHARD_VERSION "\ncalibrate=" + std::to_string(bench.largest.value) +
                          "\ndevice=" + (bench.cuda ? "cuda" : "host") + "\nalgorithm=" + word_of(bench.algorithm) + "\n";
  bench.ranks = place.processes;
  bench.mesh = std::make_unique<ProcessMesh>(MeshOptions{.place = place,
                                                         .ranks = place.processes,
                                                         .run = run,
                                                         .job = job_token(variable),
                                                         .patience = std::chrono::milliseconds(10'000)});
}

static int ranks_here(const Bench& bench, const Arguments& arguments) {
  const int gpus = bench.cuda ? bench.cuda->devices() : 0;
  if (bench.cuda && gpus < 2) throw DeviceError("calibrate", "collectives of one process need two GPUs; there is one");
  const int cores = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 2U, 8U));
  return static_cast<int>(arguments.integer("--ranks", bench.cuda ? gpus : cores, 2, bench.cuda ? gpus : 512));
}

static Measures measure(Bench& bench, const Arguments& arguments, const std::optional<ProcessPlace>& place) {
  const std::string node = this_node(variable("FORESHARD_NODE"));
  const int first_gpu = place ? place->local : 0;
  std::vector<RankId> here;
  if (bench.mesh) here = {{bench.mesh->process()}};
  for (std::int32_t r = 0; !bench.mesh && r < bench.ranks; ++r) here.push_back({r});
  std::vector<RankLocation> locations;
  for (std::size_t i = 0; i < here.size(); ++i)
    locations.push_back(bench.cuda
                            ? gpu::location_of_gpu(*bench.cuda, (first_gpu + static_cast<int>(i)) % bench.cuda->devices(), node)
                            : RankLocation{.node = node});
  if (bench.mesh) {
    const std::vector<std::string> told = bench.mesh->all_gather(to_line(locations.front()));
    locations.clear();
    for (const std::string& line : told) locations.push_back(location_of_line(line));
  }
  const std::vector<MeasuredGroup> groups = groups_to_measure(locations, !bench.mesh, asked_link(arguments));
  CollectiveSizes sizes{.most = bench.largest};
  if (!bench.cuda)
    return measure_collectives(*host_ranks(bench.mesh.get(), bench.ranks, bench.largest), bench.mesh.get(), groups, sizes);
  sizes.most_rounds = 11;
  const gpu::NcclOptions options{.ranks = bench.ranks, .mesh = bench.mesh.get(), .first_gpu = first_gpu};
  const auto ranks = gpu::nccl_collective_ranks(*bench.cuda, *bench.nccl, options, here, bench.largest, bench.algorithm);
  return measure_collectives(*ranks, bench.mesh.get(), groups, sizes);
}

ExitCode calibrate_collectives(const Arguments& arguments, const Console& console) {
  Bench bench;
  const bool gpus = arguments.choice("--device", "host", {"host", "cuda"}) == "cuda";
  bench.largest = {arguments.flag("--quick") ? 1 << 18 : gpus ? 1 << 28 : 1 << 24};
  static_cast<void>(asked_link(arguments));  // reports a wrong word before anything is started
  const auto place = process_place(variable);
  if (gpus) open_gpus(bench);
  if (place) meet(bench, *place);
  if (!place) bench.ranks = ranks_here(bench, arguments);
  const bool speaks = !bench.mesh || bench.mesh->process() == 0;
  const std::string file = arguments.text("--save-profile", gpus ? "cuda.profile.json" : "host.profile.json");
  MachineProfile profile;
  const Measures measures = telling_others(bench.mesh.get(), [&] {
    const std::string name = gpus ? bench.cuda->properties(0).device : "host";
    const std::string machine = gpus ? name + ", NCCL " + nccl::version_text(bench.nccl->version()) : machine_words();
    if (speaks) profile = earlier_profile(file, arguments.text("--name", name), arguments.has("--name"), machine);
    return measure(bench, arguments, place);
  });
  if (!speaks) return ExitCode::Ok;
  take_collectives(profile, measures);
  write_file(file, to_json(profile));
  if (arguments.flag("--json"))
    console.out << as_json(measures, profile);
  else
    console.out << as_text(measures) << "written: " << file << "\n";
  return ExitCode::Ok;
}

}  // namespace foreshard
