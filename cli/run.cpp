// foreshard run: trains the model of a saved plan for real, on this machine.
#include <algorithm>
#include <ostream>

#include "cli/cuda.h"
#include "cli/job.h"
#include "cli/progress.h"
#include "cli/run_files.h"
#include "cli/run_processes.h"
#include "cli/verb.h"
#include "core/check_plan.h"
#include "core/json.h"
#include "core/machine_profile.h"
#include "core/plan_words.h"
#include "core/ranks.h"
#include "exec/execute.h"
#include "report/chrome_trace.h"

namespace foreshard {

static ExecuteOptions execute_options(const Arguments& arguments) {
  ExecuteOptions options;
  options.steps = static_cast<int>(arguments.integer("--steps", 3, 1, 1'000'000));
  options.seed = static_cast<std::uint64_t>(arguments.integer("--seed", 0, 0, INT64_MAX));
  options.time = arguments.choice("--time", "wall", {"wall", "emulated"}) == "wall" ? TimeMode::Wall : TimeMode::Emulated;
  OptimizerSettings& optimizer = options.optimizer;
  optimizer.learning_rate = arguments.number("--learning-rate", optimizer.learning_rate, 0, 1e6);
  optimizer.weight_decay = arguments.number("--weight-decay", optimizer.weight_decay, 0, 1e6);
  optimizer.beta1 = arguments.number("--beta1", optimizer.beta1, 0, 1);
  optimizer.beta2 = arguments.number("--beta2", optimizer.beta2, 0, 1);
  optimizer.eps = arguments.number("--eps", optimizer.eps, 0, 1);
  if (arguments.has("--profile")) {
    const MachineProfile profile = load_machine_profile(arguments.text("--profile"));
    if (!profile.measured())
      throw Error(arguments.text("--profile"), "link_bandwidth", "nothing, only what runs taught",
                  "links that were measured: a profile of calibrate --device host");
    options.link = {.latency = profile.link_latency, .bandwidth = profile.link_bandwidth};
  }
  options.link.latency = {arguments.number("--link-latency", options.link.latency.value * 1e6, 0, 1e9) * 1e-6};
  options.link.bandwidth = {arguments.number("--link-bandwidth", options.link.bandwidth.value * 1e-9, 1e-6, 1e9) * 1e9};
  if (arguments.has("--memory-limit"))
    options.memory_limit = parse_bytes(arguments.text("--memory-limit"), kCommandLine, "--memory-limit");
  options.checks = {.guards = arguments.flag("--guards"), .poison = arguments.flag("--poison")};
  options.patience = std::chrono::milliseconds(static_cast<std::int64_t>(arguments.number("--patience", 3, 0.1, 1e6) * 1000));
  return options;
}

static Plan checked_plan(const Arguments& arguments) {
  const std::string& file = arguments.text("PLAN");
  Plan plan = load_plan(file);
  const int ranks = Ranks(plan).count();
  if (arguments.integer("--ranks", ranks, 1, INT32_MAX) != ranks)
    throw Error(kCommandLine, "--ranks", arguments.text("--ranks"), std::to_string(ranks) + ", which the plan is for");
  if (arguments.flag("--force")) return plan;
  const std::vector<PlanDefect> defects = check_plan(plan, {.most_defects = 1});
  if (!defects.empty())
    throw Error(file, defects[0].where, defects[0].what + " [" + defects[0].rule + "]",
                "a sound plan (--force runs it all the same)");
  return plan;
}

static const MemoryCurve* largest_curve(const Execution& done) {
  const MemoryCurve* largest = nullptr;
  for (const MemoryCurve& curve : done.result.memory.curves)
    if (curve.space == Space::Device && (!largest || sum(curve.peak) > sum(largest->peak))) largest = &curve;
  return largest;
}

static void write_step(JsonWriter& json, const StepReport& step) {
  json.field("loss", step.loss).field("time_s", step.time_s);
  if (step.loss_scale) json.field("loss_scale", *step.loss_scale).field("skipped", step.skipped);
}

// What `steps` of as_json has in place `step`, as soon as it is known.
static std::string step_line(int step, const StepReport& done) {
  JsonWriter json(0);
  write_step(json.begin_object().field("step", step), done);
  return json.end_object().text();
}

static std::string as_json(const Execution& done, const ExecuteOptions& options, int ranks, const std::string& gpu) {
  JsonWriter json;
  json.begin_object().field("plan_hash", done.result.trace.plan_hash).field("device", gpu.empty() ? "host" : "cuda");
  if (!gpu.empty()) json.field("gpu", gpu);
  json.field("ranks", ranks).field("mode", options.time == TimeMode::Wall ? "wall" : "emulated");
  json.field("iteration_time_s", done.iteration_time_s);
  json.key("steps").begin_array();
  for (const StepReport& step : done.steps) {
    write_step(json.begin_object(), step);
    json.end_object();
  }
  json.end_array();
  const MemoryCurve* curve = largest_curve(done);
  const LiveBytes peak = curve ? curve->peak : LiveBytes{};
  json.field("peak_memory_bytes", sum(peak).value);
  json.key("memory_by_category").begin_object();
  for (int c = 0; c < kCategories; ++c)
    if (static_cast<Category>(c) != Category::Framework)
      json.field(word(static_cast<Category>(c)), peak[static_cast<std::size_t>(c)].value);
  json.end_object();
  json.field("arena_bytes", curve ? curve->arena.value : std::int64_t{0}).field("workspace_bytes", done.workspace.value);
  return json.end_object().text();
}

static std::string as_text(const Execution& done, const ExecuteOptions& options, int ranks, const std::string& gpu) {
  const MemoryCurve* curve = largest_curve(done);
  const double mib = 1024.0 * 1024.0;
  std::string text = "plan " + done.result.trace.plan_hash + " on " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks");
  text += gpu.empty() ? " of this host\n" : " on " + gpu + "\n";
  text +=
      "iteration  " + plain(done.iteration_time_s * 1e3) + " ms" +
      (options.time == TimeMode::Emulated ? std::string(" (emulated: own ") + (gpu.empty() ? "CPU" : "GPU") + " time, composed)"
                                          : std::string()) +
      "\n";
  if (curve)
    text += "memory     " + plain(static_cast<double>(sum(curve->peak).value) / mib) + " MiB at the peak of rank " +
            std::to_string(curve->who.value) + ", arena " + plain(static_cast<double>(curve->arena.value) / mib) + " MiB\n";
  text += "loss       " + plain(done.steps.front().loss);
  if (done.steps.size() > 1)
    text += " -> " + plain(done.steps.back().loss) + " after " + std::to_string(done.steps.size()) + " steps";
  if (const auto& scale = done.steps.back().loss_scale) {
    const auto skipped = std::count_if(done.steps.begin(), done.steps.end(), [](const StepReport& s) { return s.skipped; });
    text += "\nloss scale " + plain(*scale) + ", " + std::to_string(skipped) + " of " + std::to_string(done.steps.size()) +
            " steps skipped";
  }
  return text + "\n";
}

static ExitCode run(const Arguments& arguments, const Console& console) {
  ExecuteOptions options = execute_options(arguments);
  const Plan plan = checked_plan(arguments);
  const std::unique_ptr<gpu::Runtime> cuda = use_device(arguments, options, arguments.flag("--graphs"));
  const std::string device = cuda ? cuda->properties(0).device : "host";
  const std::unique_ptr<ProcessMesh> mesh = other_processes(arguments, plan, options, device, console);
  options.processes = mesh.get();
  const auto nccl =
      telling_others(mesh.get(), [&] { return use_nccl(arguments, cuda.get(), mesh.get(), Ranks(plan).count(), options); });
  const auto samples = telling_others(mesh.get(), [&] { return use_run_files(arguments, plan, options); });
  const bool speaks = !mesh || mesh->process() == 0;
  const std::string mode = arguments.choice("--progress", "auto", progress_modes());
  Progress progress(speaks ? mode : "none", console);
  options.on_step = [&](int step, const StepReport& done) {
    progress.line(step_line(step, done));
    progress.report((step + 1.0) / options.steps);
  };
  const auto answer = execute(plan, options);
  if (const auto* infeasible = std::get_if<Infeasible>(&answer)) {
    complain(*infeasible, console);
    if (arguments.flag("--json")) console.out << infeasible_json(*infeasible);
    return ExitCode::Infeasible;
  }
  const Execution& done = std::get<Execution>(answer);
  if (!speaks) return ExitCode::Ok;  // process 0 has the result
  if (arguments.has("--save-result")) save_result(done.result, arguments.text("--save-result"));
  if (arguments.has("--trace")) write_file(arguments.text("--trace"), chrome_trace(done.result));
  const int ranks = Ranks(plan).count();
  const std::string gpu = cuda ? gpus_in_words(*cuda) : "";
  console.out << (arguments.flag("--json") ? as_json(done, options, ranks, gpu) : as_text(done, options, ranks, gpu));
  return ExitCode::Ok;
}

static std::vector<VerbOption> run_options() {
  const std::string training = "training", time = "time", memory = "memory", checks = "checks", output = "output";
  std::vector<VerbOption> options = {
      {.name = "PLAN", .value = "PLAN", .help = "a .plan.json file", .required = true},
      {.name = "--device", .value = "KIND", .help = "host, or cuda: the GPUs of this machine (host)"},
      {.name = "--graphs",
       .help = "cuda: what a stream does between two events is one CUDA graph; for kernels of microseconds"},
      {.name = "--nccl", .help = "cuda: collectives by NCCL in one process too, a GPU per rank; several processes always"},
      {.name = "--ranks", .value = "N", .help = "refuse a plan for another number of ranks"},
      {.name = "--steps", .value = "N", .help = "optimizer steps (3)", .group = training},
      {.name = "--seed", .value = "N", .help = "of initial weights, samples and dropout (0)", .group = training},
      {.name = "--learning-rate", .value = "X", .help = "(0.001)", .group = training},
      {.name = "--weight-decay", .value = "X", .help = "decoupled (0)", .group = training},
      {.name = "--beta1", .value = "X", .help = "of Adam (0.9)", .group = training},
      {.name = "--beta2", .value = "X", .help = "of Adam (0.999)", .group = training},
      {.name = "--eps", .value = "X", .help = "of Adam (1e-8)", .group = training},
      {.name = "--time",
       .value = "MODE",
       .help = "wall, or emulated: every instruction's own CPU time, composed along the plan (default wall)",
       .group = time},
      {.name = "--profile",
       .value = "FILE",
       .help = "emulated: transfers take what `foreshard calibrate` measured",
       .group = time},
      {.name = "--link-latency", .value = "US", .help = "emulated: microseconds of a transfer (5)", .group = time},
      {.name = "--link-bandwidth", .value = "GB/s", .help = "emulated: of a transfer (10)", .group = time},
      {.name = "--memory-limit",
       .value = "SIZE",
       .help = "of each rank, \"8 GiB\": what does not fit is not started",
       .group = memory},
      {.name = "--guards", .help = "guard bytes round every block", .group = checks},
      {.name = "--poison", .help = "memory that is not alive holds no numbers", .group = checks},
      {.name = "--force", .help = "run a plan that check-plan refuses", .group = checks},
      {.name = "--patience",
       .value = "S",
       .help = "seconds without progress before all ranks are stopped (3)",
       .group = checks},
      {.name = "--trace", .value = "FILE", .help = "write a Chrome trace, to open in Perfetto", .group = output},
      {.name = "--save-result", .value = "FILE", .help = "write trace and memory timeline", .group = output},
      {.name = "--json", .help = "print JSON", .group = output},
      {.name = "--progress",
       .value = "HOW",
       .help = "auto (a bar on a terminal), json (lines on standard error) or none",
       .group = output}};
  for (const VerbOption& option : process_options()) options.push_back(option);
  return options;
}

Verb run_verb() {
  return {.name = "run",
          .summary = "Trains the model of a saved plan for real: every rank is a thread, of one process or several.",
          .notes = "The plan is obeyed as it is: its arena, its streams, its numbers.",
          .examples = {"foreshard run gpt.plan.json --steps 10 --time emulated --save-result measured.result",
                       "foreshard run gpt.plan.json --steps 300 --data book.txt --save gpt.safetensors --save-every 100"},
          .options = with_run_files(run_options()),
          .run = run};
}

}  // namespace foreshard
