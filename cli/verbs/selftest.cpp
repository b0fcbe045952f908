// foreshard selftest: compares every GPU kernel with the host.
#include <algorithm>
#include <cstdlib>
#include <ostream>

#include "cli/parts/cuda.h"
#include "cli/program/progress.h"
#include "cli/program/table.h"
#include "cli/program/verb.h"
#include "core/base/count_text.h"
#include "core/json/json.h"
#include "exec/cuda_checks/kernel_cases.h"
#include "exec/cuda_checks/nccl_selftest.h"

namespace foreshard {

namespace {

struct Line {
  std::string name = {}, fault = {};
  double error = 0, tolerance = 0;
  bool borders_whole = true, right = false;
};

std::string verdict(const Line& line) {
  if (line.right) return "ok";
  if (!line.fault.empty()) return line.fault;
  return line.borders_whole ? "differs" : "wrote beside an operand";
}

std::string as_json(const std::vector<Line>& lines, const std::string& gpu) {
  JsonWriter json;
  json.begin_object().field("gpu", gpu).key("kernels").begin_array();
  for (const Line& line : lines) {
    json.begin_object().field("name", line.name).field("right", line.right).field("verdict", verdict(line));
    json.field("error", std::min(line.error, 1e300)).field("tolerance", line.tolerance).end_object();
  }
  return json.end_array().end_object().text();
}

const char* variable(const char* name) { return std::getenv(name); }

// With one rank per GPU; two ranks on a single GPU where NCCL allows them to share it.
void compare_collectives(gpu::Runtime& runtime, nccl::Library& library, std::vector<Line>& lines) {
  gpu::NcclOptions options{.shares_gpus = gpu::shares_gpus(library, variable("NCCL_MULTI_RANK_GPU_ENABLE"))};
  options.ranks = std::max(runtime.devices(), options.shares_gpus ? 2 : 1);
  const std::string with = "NCCL " + nccl::version_text(library.version()) + ", " + counted(options.ranks, "rank") + ": ";
  for (const gpu::NcclOutcome& done : gpu::nccl_outcomes(runtime, library, options))
    lines.push_back({with + done.name, done.fault, done.error, done.tolerance, true, done.right()});
}

ExitCode run_selftest(const Arguments& arguments, const Console& console) {
  ExecuteOptions unused;
  const std::unique_ptr<gpu::Runtime> runtime =
      use_device(arguments.has("--device") ? arguments : arguments.with("--device", "cuda"), unused);
  if (!runtime) throw Error(kCommandLine, "--device", "\"host\"", "cuda: the host is what the kernels are compared with");
  // Opened first, so that a machine without NCCL says so before the kernels have taken their time.
  const std::unique_ptr<nccl::Library> library = arguments.flag("--nccl") ? nccl::open_library(variable) : nullptr;
  const std::string only = arguments.text("--only");
  const auto other = [&](const auto& named) { return named.name.find(only) == std::string::npos; };
  std::vector<gpu::KernelCase> cases = gpu::kernel_cases(!arguments.flag("--quick"));
  std::vector<gpu::FusedCase> fused = gpu::fused_cases(!arguments.flag("--quick"));
  std::erase_if(cases, other);
  std::erase_if(fused, other);
  std::vector<Line> lines;
  {
    Progress progress(arguments.choice("--progress", "auto", progress_modes()), console);
    for (const gpu::KernelCase& tried : cases) {
      const gpu::Outcome done = gpu::run_case(tried, *runtime);
      lines.push_back({tried.name, done.fault, done.error, tried.tolerance, done.borders_whole, done.right(tried)});
      progress.report(static_cast<double>(&tried - cases.data() + 1) / static_cast<double>(cases.size()));
      if (!is<ops::Attention>(tried.what.op)) continue;
      for (const auto& [by, name] : {std::pair{gpu::By::OurKernels, "_own"}, {gpu::By::LibrariesInAnyOrder, "_any_order"}}) {
        if (by == gpu::By::LibrariesInAnyOrder && ops::is_forward(tried.what.phase)) continue;
        const gpu::Outcome other = gpu::run_case(tried, *runtime, by);
        lines.push_back(
            {tried.name + name, other.fault, other.error, tried.tolerance, other.borders_whole, other.right(tried)});
      }
    }
    for (const gpu::FusedCase& tried : fused)
      if (const auto done = gpu::run_case(tried, *runtime))  // empty: the library does not have this fused product
        lines.push_back({tried.name, done->fault, done->error, tried.tolerance, done->borders_whole, done->right(tried)});
  }
  if (library) compare_collectives(*runtime, *library, lines);
  std::erase_if(lines, other);
  if (lines.empty())
    throw Error(kCommandLine, "--only", '"' + only + '"', "part of the name of a comparison (--all prints them)");
  const std::string gpu = gpus_in_words(*runtime);
  const auto wrong = std::count_if(lines.begin(), lines.end(), [](const Line& line) { return !line.right; });
  if (arguments.flag("--json")) {
    console.out << as_json(lines, gpu);
  } else {
    for (const Line& line : lines)
      if (!line.right || arguments.flag("--all"))
        console.out << line.name << ": " << verdict(line) << ", error " << plain(line.error) << ", at most "
                    << plain(line.tolerance) << "\n";
    console.out << lines.size() - static_cast<std::size_t>(wrong) << " of " << lines.size()
                << " comparisons with the host are right on " << gpu << "\n";
  }
  return wrong == 0 ? ExitCode::Ok : ExitCode::DeviceFailure;
}

}  // namespace

Verb selftest_verb() {
  return {.name = "selftest",
          .summary = "Compares every kernel of the GPU with the host, on random operands.",
          .notes = "Ends with code 3 when one differs, or when there is no GPU.",
          .examples = {"foreshard selftest --device cuda"},
          .options = {{.name = "--device", .value = "KIND", .help = "cuda"},
                      {.name = "--quick", .help = "small operands only"},
                      {.name = "--nccl", .help = "collectives and messages by NCCL between all GPUs, too"},
                      {.name = "--only", .value = "WORD", .help = "only comparisons with WORD in their name"},
                      {.name = "--all", .help = "print the comparisons that are right, too"},
                      {.name = "--json", .help = "print JSON", .group = "output"},
                      progress_option("output")},
          .run = run_selftest};
}

}  // namespace foreshard
