#include "cli/verbs/calibrate.h"

#include <algorithm>
#include <ostream>
#include <thread>

#include "cli/job/notes.h"
#include "cli/job/profile.h"
#include "cli/parts/calibrate_collectives.h"
#include "cli/parts/calibrate_probes.h"
#include "cli/parts/calibrate_runs.h"
#include "cli/parts/cuda.h"
#include "cli/program/interrupt.h"
#include "cli/program/no_effect.h"
#include "cli/program/progress.h"
#include "cli/program/separate_files.h"
#include "cli/program/verb.h"
#include "core/base/error.h"
#include "core/cluster_file/cluster_file.h"
#include "core/json/json.h"
#include "exec/calibrate/calibrate.h"
#include "exec/cuda_checks/calibrate_cuda.h"

namespace foreshard {

// 8-bit matrix products are measured on GPUs only: the host's implementation is a reference and not fast.
static std::vector<DType> read_dtypes(const Arguments& arguments, bool cuda) {
  std::vector<std::pair<std::string, DType>> known = {
      {"fp64", DType::F64}, {"fp32", DType::F32}, {"bf16", DType::BF16}, {"fp16", DType::F16}};
  if (cuda) known.emplace_back("fp8", DType::F8);
  std::vector<std::string> names;
  for (const auto& [name, dtype] : known) names.push_back(name);
  std::vector<DType> dtypes;
  std::string rest = arguments.text("--precision", "fp32,bf16");
  while (!rest.empty()) {
    const std::string word = rest.substr(0, rest.find(','));
    rest = word.size() < rest.size() ? rest.substr(word.size() + 1) : "";
    const auto found = std::find(names.begin(), names.end(), word);
    if (found == names.end())
      throw Error(kCommandLine, "--precision", "\"" + word + "\"", "some of " + joined(names) + ", with commas between them");
    dtypes.push_back(known[static_cast<std::size_t>(found - names.begin())].second);
  }
  if (dtypes.empty()) throw Error(kCommandLine, "--precision", "nothing", "some of " + joined(names));
  return dtypes;
}

// For GPUs no cluster file is written: topologies/ has the clusters.
static ExitCode tell_gpu(const MachineProfile& profile, gpu::CudaMeasures& measures, const std::string& file,
                         const Arguments& arguments, const Console& console) {
  if (arguments.flag("--json")) {
    console.out << to_json(profile);
    return ExitCode::Ok;
  }
  console.out << profile_text(profile) << "\n";
  for (const gpu::HostCopy& copy : measures.host_copies())
    console.out << (copy.to_device ? "to the GPU   " : "from the GPU ") << (copy.pinned ? "pinned   " : "pageable ")
                << plain(static_cast<double>(copy.bytes.value) / 1024)
                << " KiB: " << plain(static_cast<double>(copy.bytes.value) / copy.time.value * 1e-9) << " GB/s\n";
  console.out << "\nwritten: " << file << "\n";
  return ExitCode::Ok;
}

// Refuses options that have no effect for the measurement that is asked for.
static void expect_effects(const Arguments& arguments) {
  const bool gpu = arguments.choice("--device", "host", {"host", "cuda"}) == "cuda";
  const std::vector<std::string> of_probes = {"--precision", "--steps", "--largest-product", "--largest-hidden",
                                              "--save-cluster"};
  if (arguments.has("--runs")) {
    refuse_without(arguments, "no --runs", of_probes);
    refuse_without(arguments, "no --runs",
                   {"--device", "--name", "--quick", "--collectives", "--link-class", "--ranks", "--progress"});
  } else if (arguments.flag("--collectives")) {
    refuse_without(arguments, "no --collectives", of_probes);
    refuse_without(arguments, "no --collectives", {"--progress"});
  } else {
    refuse_without(arguments, "--collectives", {"--link-class"});
    if (gpu) refuse_without(arguments, "no --device cuda", {"--save-cluster", "--ranks"});
  }
  if (!gpu) refuse_without(arguments, "--device cuda", {"--name"});
}

struct ProbeLimits {
  std::int64_t product = 0, hidden = 0, sequence = 0;
};
static ProbeLimits probe_limits(const Arguments& arguments, bool gpu) {
  const bool quick = arguments.flag("--quick");
  const ProbeLimits usual = gpu && quick ? ProbeLimits{1024, 2048, 2048}
                            : gpu        ? ProbeLimits{8192, 8192, 32'768}
                            : quick      ? ProbeLimits{128, 150, 0}
                                         : ProbeLimits{1024, 544, 0};
  return {arguments.integer("--largest-product", usual.product, 16, 16384),
          arguments.integer("--largest-hidden", usual.hidden, 48, 16384), usual.sequence};
}

static ExitCode run_calibrate(const Arguments& arguments, const Console& console) {
  expect_effects(arguments);
  expect_separate_files(arguments, {"--runs"}, {"--save-profile", "--save-cluster"});
  if (!arguments.flag("--collectives"))
    expect_places(arguments, {"--save-profile", "--save-cluster"});  // with --collectives only process 0 writes
  if (arguments.has("--runs")) return calibrate_runs(arguments, console);
  if (arguments.flag("--collectives")) return calibrate_collectives(arguments, console);
  const std::vector<DType> dtypes = read_dtypes(arguments, arguments.text("--device", "host") == "cuda");
  const int ranks = static_cast<int>(arguments.integer("--ranks", 8, 1, 512));
  ExecuteOptions unused;
  const std::unique_ptr<gpu::Runtime> cuda = use_device(arguments, unused);
  const ProbeLimits limits = probe_limits(arguments, cuda != nullptr);
  CalibrateOptions options{.steps = static_cast<int>(arguments.integer("--steps", cuda ? 7 : 5, 2, 1000)),
                           .dtypes = dtypes,
                           .least_product = cuda ? 64 : 16,
                           .largest_product = limits.product};
  options.cancel = &watch_interrupt();
  Cluster cluster = parse_cluster(host_cluster_text({}, cuda ? 16 : ranks), "this-host");
  for (Gpu& gpu : cluster.gpus) gpu.fp8 = cuda ? gpu.bf16 : FlopsPerSecond{};  // any rate, so that probes in fp8 can be lowered
  const std::vector<Plan> probes =
      cuda ? gpu_probes(cluster, dtypes, limits.hidden, limits.sequence) : calibration_probes(cluster, dtypes, limits.hidden);
  std::optional<gpu::CudaMeasures> measures;
  if (cuda) {
    gpu::MeasureSizes sizes = gpu::sizes_for(cuda->properties(0).memory);
    sizes.times = options.steps;
    options.measures = &measures.emplace(*cuda, sizes, gpu::product_file_path());
    options.device = arguments.text("--name", cuda->properties(0).device);
  }
  const std::string profile_file = arguments.text("--save-profile", cuda ? "cuda.profile.json" : "host.profile.json");
  options.keep = [&](const MachineProfile& found) {
    write_file(profile_file, to_json(found));
    console.err << "foreshard: the device failed; what was measured until then: " << profile_file << "\n";
  };
  std::optional<MachineProfile> profile;
  std::vector<std::string> notes;
  {
    Progress progress(arguments.choice("--progress", "auto", progress_modes()), console);
    options.progress = [&](double fraction) { progress.report(fraction); };
    profile = calibrate(probes, options, &notes);
  }
  if (!profile) {
    console.err << "foreshard: interrupted\n";
    return ExitCode::Interrupted;
  }
  for (const std::string& note : notes) say(arguments, console, note);
  if (const std::string slow = cuda ? slow_kernels_note() : ""; !slow.empty()) say(arguments, console, slow);
  const std::string cluster_file = arguments.text("--save-cluster", "this-host.json");
  write_file(profile_file, to_json(*profile));
  if (measures) return tell_gpu(*profile, *measures, profile_file, arguments, console);
  write_file(cluster_file, host_cluster_text(*profile, ranks));
  console.out << (arguments.flag("--json") ? to_json(*profile) : profile_text(*profile));
  if (!arguments.flag("--json"))
    console.out << "\n" << options.steps << " runs of every probe; written: " << profile_file << ", " << cluster_file << "\n";
  return ExitCode::Ok;
}

Verb calibrate_verb() {
  return {
      .name = "calibrate",
      .summary = "Measures this machine and writes a profile that predictions use in place of datasheets.",
      .notes =
          "Runs products by shape, copies and all-reduces by size, and small models of its own under every kind of "
          "strategy; on a GPU the instructions of models as large as GPUs train, each by itself. The cluster file describes "
          "this host as a node of N devices, each with a core of its own.",
      .examples = {"foreshard calibrate --device host --precision fp32,bf16",
                   "foreshard calibrate --runs my-runs.csv --save-profile mine.profile.json"},
      .options =
          {{.name = "--device", .value = "KIND", .help = "host, or cuda: GPU 0 of this machine (host)"},
           {.name = "--runs",
            .value = "FILE",
            .help = "measure nothing: learn from the training runs of a table (docs/learning.md); may be repeated",
            .repeatable = true},
           {.name = "--name", .value = "NAME", .help = "cuda: the GPU's name in cluster files (as the driver calls it)"},
           {.name = "--precision", .value = "LIST", .help = "number formats: fp64, fp32, bf16, fp16, on GPUs fp8 (fp32,bf16)"},
           {.name = "--quick", .help = "small models and products only: seconds, for models as small"},
           {.name = "--collectives",
            .help = "collectives between the processes that a launcher started, or inside this one, and nothing else; with "
                    "--device cuda by NCCL; into the profile file"},
           {.name = "--link-class",
            .value = "CLASS",
            .help = "--collectives: what joins the ranks of a node (as found): process, node, nvlink, pcie"},
           {.name = "--ranks", .value = "N", .help = "devices of the cluster file (8); ranks of --collectives in one process"},
           {.name = "--steps", .value = "N", .help = "runs of every probe (5; a GPU 7)"},
           {.name = "--largest-product", .value = "N", .help = "rows, columns and depth of products (1024; a GPU 8192)"},
           {.name = "--largest-hidden", .value = "N", .help = "hidden size of the probes (544; a GPU 8192)"},
           {.name = "--save-profile", .value = "FILE", .help = "(host.profile.json; runs.profile.json)", .group = "output"},
           {.name = "--save-cluster", .value = "FILE", .help = "(this-host.json)", .group = "output"},
           {.name = "--json", .help = "print the profile", .group = "output"},
           progress_option("output")},
      .run = run_calibrate};
}

}  // namespace foreshard
