// foreshard run: trains the model of a saved plan for real, on this machine.
#include <optional>
#include <ostream>

#include "cli/job/job.h"
#include "cli/job/notes.h"
#include "cli/job/sound_plan.h"
#include "cli/parts/cuda.h"
#include "cli/parts/loss_log.h"
#include "cli/parts/run_files.h"
#include "cli/parts/run_output.h"
#include "cli/parts/run_processes.h"
#include "cli/program/interrupt.h"
#include "cli/program/no_effect.h"
#include "cli/program/progress.h"
#include "cli/program/separate_files.h"
#include "cli/program/verb.h"
#include "core/json/json.h"
#include "core/plan/ranks.h"
#include "core/profile/machine_profile.h"
#include "exec/calibrate/calibrate.h"
#include "exec/interpreter/execute.h"
#include "replay/replay.h"
#include "report/export/chrome_trace.h"

namespace foreshard {

// The largest beta of Adam, which divides by 1 - beta^n.
static constexpr double kBelowOne = 0.999999999;

// Seconds: a GPU's libraries take long to load, and many nodes long to connect.
static constexpr double kGpuPatience = 300;

static ExecuteOptions execute_options(const Arguments& arguments) {
  ExecuteOptions options;
  options.steps = static_cast<int>(arguments.integer("--steps", 3, 1, 1'000'000));
  options.seed = static_cast<std::uint64_t>(arguments.integer("--seed", 0, 0, INT64_MAX));
  options.time = arguments.choice("--time", "wall", {"wall", "emulated"}) == "wall" ? TimeMode::Wall : TimeMode::Emulated;
  if (options.time == TimeMode::Wall)
    refuse_without(arguments, "--time emulated", {"--profile", "--link-latency", "--link-bandwidth"});
  OptimizerSettings& optimizer = options.optimizer;
  optimizer.learning_rate = arguments.number("--learning-rate", optimizer.learning_rate, 0, 1e6);
  optimizer.weight_decay = arguments.number("--weight-decay", optimizer.weight_decay, 0, 1e6);
  optimizer.beta1 = arguments.number("--beta1", optimizer.beta1, 0, kBelowOne);
  optimizer.beta2 = arguments.number("--beta2", optimizer.beta2, 0, kBelowOne);
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
  const bool cuda = arguments.choice("--device", "host", {"host", "cuda"}) == "cuda";
  const auto seconds = [&](const char* option, double otherwise) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(arguments.number(option, otherwise, 0.1, 1e6) * 1000));
  };
  options.patience = seconds("--patience", cuda ? kGpuPatience : 3);
  if (cuda) options.limits.first_use = seconds("--init-patience", kGpuPatience);
  if (!cuda) refuse_without(arguments, "--device cuda", {"--init-patience", "--no-epilogues", "--any-order"});
  return options;
}

// Prints a note for options of Adam when the plan has another optimizer.
static void say_unused_optimizer(const Arguments& arguments, const Plan& plan, const Console& console) {
  for (const Segment& segment : plan.segments)
    for (const Instruction& instruction : segment.instructions) {
      const auto* compute = std::get_if<Compute>(&instruction.what);
      const auto* host = std::get_if<HostCompute>(&instruction.what);
      if ((compute && is<ops::Adam>(compute->op)) || (host && is<ops::Adam>(host->op))) return;
    }
  for (const char* option : {"--beta1", "--beta2", "--eps"})
    if (arguments.has(option)) say(arguments, console, std::string(option) + " changes nothing here: the plan has no Adam");
}

static Plan checked_plan(const Arguments& arguments) {
  const std::string& file = arguments.text("PLAN");
  Plan plan = load_plan(file);
  const int ranks = Ranks(plan).count();
  if (arguments.integer("--ranks", ranks, 1, INT32_MAX) != ranks)
    throw Error(kCommandLine, "--ranks", arguments.text("--ranks"), std::to_string(ranks) + ", which the plan is for");
  if (arguments.flag("--force")) return plan;
  expect_sound(plan, file, ", --force runs it all the same");
  return plan;
}

// Printed before the first step, so that the user sees at once when a training resumes from the wrong checkpoint.
static void tell_start(const RunStart& start, const Plan& plan, const std::string& mode, Progress& progress,
                       const Console& console) {
  if (!start.has_checksums) console.err << "foreshard: " << start.resumed << " has no checksums; an earlier version wrote it\n";
  if (!start.knows_data)
    console.err << "foreshard: " << start.resumed << " does not say what it was trained on; an earlier version wrote it\n";
  if (mode == "json")
    progress.line("{\"resumed_after_step\": " + std::to_string(start.step) + "}");
  else
    console.err << "foreshard: resuming " << start.resumed << " after step " << start.step << " on " << start.trained_on
                << "\n";
  if (has_steady_period(plan))
    console.err << "foreshard: the checkpoint has the newest weights only: the first micro-batches read these instead of older "
                   "ones, as at the start of a training\n";
  console.err << std::flush;
}

static void tell_result(const RunWords& words, const ExecuteOptions& options, const Arguments& arguments,
                        const Console& console) {
  const Execution& done = words.done;
  for (const std::string& note : done.notes) say(arguments, console, note);
  if (arguments.has("--save-result")) save_result(done.result, arguments.text("--save-result"));
  if (arguments.has("--trace")) write_file(arguments.text("--trace"), chrome_trace(done.result));
  console.out << (arguments.flag("--json") ? run_json(words) : run_text(words)) << std::flush;
  if (!done.not_saved.empty())
    console.err << "foreshard: " << done.not_saved << "; that is not saved to " << options.save
                << ", and the run ends here (--save-not-finite saves it all the same)\n"
                << std::flush;
  if (!done.stopped) return;
  console.err << "foreshard: stopped after step " << done.first_step + static_cast<int>(done.steps.size())
              << (options.save.empty() ? "; nothing is kept: --save FILE was not given"
                                       : "; " + options.save + " holds it: --resume " + options.save + " goes on")
              << "\n"
              << std::flush;
}

static ExitCode run_plan(const Arguments& arguments, const Console& console) {
  // --save may name the checkpoint that --resume reads: the new one then replaces it.
  expect_separate_files(arguments, {"PLAN", "--data", "--profile"}, {"--save", "--loss-log", "--trace", "--save-result"});
  expect_separate_files(arguments, {"--resume"}, {"--loss-log", "--trace", "--save-result"});
  ExecuteOptions options = execute_options(arguments);
  const Plan plan = checked_plan(arguments);
  say_unused_optimizer(arguments, plan, console);
  const std::unique_ptr<gpu::Runtime> cuda = use_device(arguments, options, gpu_runs(arguments, options));
  if (const std::string slow = cuda ? slow_kernels_note() : ""; !slow.empty()) say(arguments, console, slow);
  const std::string device = cuda ? cuda->properties(0).device : "host";
  options.measured_on = {device, cuda ? gpus_in_words(*cuda) : machine_words()};
  const std::unique_ptr<ProcessMesh> mesh = other_processes(arguments, plan, options, device, console);
  options.processes = mesh.get();
  const auto nccl =
      telling_others(mesh.get(), [&] { return use_nccl(arguments, cuda.get(), mesh.get(), Ranks(plan).count(), options); });
  const RunStart start = telling_others(mesh.get(), [&] { return use_run_files(arguments, plan, options); });
  const int ranks_here = ranks_of_this_machine(mesh.get(), plan);
  const bool speaks = !mesh || mesh->process() == 0;
  if (speaks) telling_others(mesh.get(), [&] { expect_places(arguments, {"--trace", "--save-result"}); });
  const std::string mode = arguments.choice("--progress", "auto", progress_modes());
  Progress progress(speaks ? mode : "none", console);
  std::optional<LossLog> log;
  if (speaks && arguments.has("--loss-log"))
    telling_others(mesh.get(), [&] { log.emplace(arguments.text("--loss-log"), start.step); });
  if (speaks && !start.resumed.empty()) tell_start(start, plan, mode, progress, console);
  const std::vector<RouterName> routers = routers_of(plan);
  options.on_step = [&](int step, const StepReport& done) {
    if (log) log->add(start.step + step + 1, done);
    progress.line(step_line(step, done, routers));
    progress.report((step + 1.0) / options.steps, experts_text(done, routers));
  };
  // Before the first step there is nothing to save: a signal ends the process.
  options.cancel = &interrupt_flag();
  options.on_start = [&] {
    watch_interrupt(speaks ? "foreshard: stops after this step; a second signal stops at once\n" : nullptr);
  };
  const auto answer = execute(plan, options);
  if (const auto* infeasible = std::get_if<Infeasible>(&answer)) {
    complain(*infeasible, console);
    if (arguments.flag("--json")) console.out << infeasible_json(*infeasible);
    return ExitCode::Infeasible;
  }
  const Execution& done = std::get<Execution>(answer);
  if (speaks) {  // process 0 has the result
    const RunWords words{.done = done,
                         .time = options.time,
                         .ranks = Ranks(plan).count(),
                         .ranks_here = ranks_here,
                         .cores = usable_cores(),
                         .checks = options.checks,
                         .gpu = cuda ? gpus_in_words(*cuda) : "",
                         .trained_on = start.trained_on};
    tell_result(words, options, arguments, console);
  }
  if (!done.stopped && done.not_saved.empty()) return ExitCode::Ok;
  // Launchers kill all processes when one ends with an exit code other than 0: wait until process 0 has printed the result.
  if (mesh) static_cast<void>(mesh->all_gather(""));
  return done.stopped ? ExitCode::Interrupted : ExitCode::WrongInput;
}

static std::vector<VerbOption> run_options() {
  const std::string training = "training", time = "time", memory = "memory", checks = "checks", output = "output";
  std::vector<VerbOption> options = {
      {.name = "PLAN", .value = "PLAN", .help = "a .plan.json file", .required = true},
      {.name = "--device", .value = "KIND", .help = "host, or cuda: the GPUs of this machine (host)"},
      {.name = "--graphs", .help = "cuda: capture work between events as CUDA graphs (helps when kernels take microseconds)"},
      {.name = "--no-epilogues",
       .help = "cuda: every instruction by itself, and a span of its own; products do not do the next ones' work"},
      {.name = "--any-order",
       .help = "cuda: cuDNN may add up the gradients of attention in any order: faster, with other bits in every run"},
      {.name = "--nccl", .help = "cuda: collectives by NCCL in one process too, a GPU per rank; several processes always"},
      {.name = "--ranks", .value = "N", .help = "refuse a plan for another number of ranks"},
      {.name = "--steps", .value = "N", .help = "optimizer steps of this run, after those of --resume (3)", .group = training},
      {.name = "--seed", .value = "N", .help = "of initial weights, samples and dropout (0)", .group = training},
      {.name = "--learning-rate", .value = "X", .help = "(0.001)", .group = training},
      {.name = "--weight-decay", .value = "X", .help = "decoupled (0)", .group = training},
      {.name = "--beta1", .value = "X", .help = "of Adam (0.9)", .group = training},
      {.name = "--beta2", .value = "X", .help = "of Adam (0.999)", .group = training},
      {.name = "--eps", .value = "X", .help = "of Adam (1e-8)", .group = training},
      {.name = "--time",
       .value = "MODE",
       .help = "wall, or emulated: per-op CPU time, scheduled along the plan (default wall)",
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
      {.name = "--poison", .help = "fill dead blocks with NaN", .group = checks},
      {.name = "--force",
       .help = "run a plan that check-plan refuses; go on from a checkpoint with other data",
       .group = checks},
      {.name = "--patience",
       .value = "S",
       .help = "seconds without progress before all ranks are stopped (3; cuda: 300)",
       .group = checks},
      {.name = "--init-patience",
       .value = "S",
       .help = "cuda: seconds in which NCCL has to connect, and that the first step may take longer (300)",
       .group = checks},
      {.name = "--trace", .value = "FILE", .help = "write a Chrome trace, to open in Perfetto", .group = output},
      {.name = "--save-result", .value = "FILE", .help = "write trace and memory timeline", .group = output},
      {.name = "--json", .help = "print JSON", .group = output},
      progress_option(output)};
  for (const VerbOption& option : process_options()) options.push_back(option);
  return options;
}

// Errors of the executor are about the plan; the message names the plan's file instead.
static ExitCode run_training(const Arguments& arguments, const Console& console) {
  const std::string plan = "plan: ";
  try {
    return run_plan(arguments, console);
  } catch (const Error& wrong) {
    const std::string message = wrong.what();
    if (!message.starts_with(plan)) throw;
    throw Error(arguments.text("PLAN") + ": " + message.substr(plan.size()));
  }
}

Verb run_verb() {
  return {
      .name = "run",
      .summary = "Trains the model of a saved plan for real: every rank is a thread, of one process or several.",
      .notes = "The plan is obeyed as it is: its arena, its streams, its numbers.",
      .examples = {"foreshard run gpt.plan.json --steps 10 --time emulated --save-result measured.result",
                   "foreshard run gpt.plan.json --steps 300 --data book.txt --save gpt.safetensors --save-every 100",
                   "foreshard run gpt.plan.json --steps 300 --data book.txt --resume gpt.safetensors --save gpt.safetensors"},
      .options = with_run_files(run_options()),
      .run = run_training};
}

}  // namespace foreshard
