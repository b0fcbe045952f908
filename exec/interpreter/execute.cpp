#include "exec/interpreter/execute.h"

#include <algorithm>
#include <cmath>

#include "core/base/file_lock.h"
#include "core/plan/plan_indices.h"
#include "exec/data/checkpoint.h"
#include "exec/data/kept_checkpoints.h"
#include "exec/data/safetensors.h"
#include "exec/interpreter/measured_trace.h"
#include "exec/interpreter/memory_limit.h"
#include "exec/interpreter/rank_report.h"
#include "exec/interpreter/rank_threads.h"
#include "exec/mesh/process_mesh.h"

namespace foreshard {

namespace {

constexpr int kMostRanksHere = 512;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Process 0 writes the files.
bool writes_files(const ExecuteOptions& options) { return !options.processes || options.processes->process() == 0; }

void check(const Plan& plan, const ExecuteOptions& options) {
  if (const auto problem = first_bad_index(plan)) throw Error("plan", problem->path, problem->found, problem->expected);
  if (const int count = Ranks(plan).count(); count > kMostRanksHere)
    throw Error("plan", "ranks", std::to_string(count),
                "at most " + std::to_string(kMostRanksHere) + " threads of this process");
  if (options.processes && options.devices && !options.across_processes)
    throw Error("options", "devices", "several processes", "all ranks of such devices in one process");
  if (options.processes && options.tensors) throw Error("options", "tensors", "several processes", "all ranks in one process");
  if (options.steps < 1) throw Error("options", "steps", std::to_string(options.steps), "at least 1");
  if (!options.save.empty() && writes_files(options)) expect_writable(options.save);
  if (options.saves.every < 0) throw Error("options", "save every", std::to_string(options.saves.every), "0 or more");
  if (options.saves.keep < 0) throw Error("options", "keep", std::to_string(options.saves.keep), "0 or more");
}

// Saves a checkpoint if one is due after `done` steps of this run. Returns why the state was not saved; "": it was, or nothing is due.
std::string save(const Plan& plan, const RankThreads& team, const ExecuteOptions& options, const TrainingPoint& start, int done,
                 const StepReport& last_step, bool last) {
  const bool due = last || (options.saves.every > 0 && done % options.saves.every == 0);
  if (options.save.empty() || !due) return "";
  const int step = start.step + done;
  const std::string after = "after step " + std::to_string(step) + " ";
  if (!options.saves.not_finite && !std::isfinite(last_step.loss) && !last_step.skipped)
    return after + "the loss is " + (std::isnan(last_step.loss) ? "nan" : "infinite");
  const SavedCheckpoint saved =
      save_checkpoint(options.save, plan, team.ranks(), team.memories(),
                      {.step = step,
                       .samples = start.samples + done * plan.samples,
                       .seed = start.seed,
                       .loss_scale = team.loss_scale(done - 1),
                       .source = options.samples ? options.samples->source() : SampleSource{}},
                      options.processes, options.saves.not_finite ? NotFinite::Save : NotFinite::Refuse);
  if (!saved.not_finite.empty() && !options.saves.not_finite)
    return after + saved.not_finite + " has elements that are not finite";
  if (options.saves.keep > 0 && writes_files(options)) keep_checkpoints(options.save, step, options.saves.keep);
  return "";
}

struct StepsDone {
  std::vector<StepReport> reports = {};
  std::string not_saved = {};
};

StepsDone run_steps(const Plan& plan, RankThreads& team, const ExecuteOptions& options, const TrainingPoint& start) {
  using Clock = std::chrono::steady_clock;
  StepsDone all{.reports = std::vector<StepReport>(static_cast<std::size_t>(options.steps))};
  if (options.on_start) options.on_start();
  int together = 1;
  for (int step = 0; step < options.steps; step += together) {
    if (!options.barrier)
      together = std::min(options.saves.every > 0 ? options.saves.every : options.steps, options.steps - step);
    const Clock::time_point before = Clock::now();
    team.run(step, together);
    const double time = std::chrono::duration<double>(Clock::now() - before).count() / together;
    for (int i = step; i < step + together; ++i) {
      StepReport& report = all.reports[static_cast<std::size_t>(i)] = team.report(i);
      report.time_s = time;
      if (options.on_step) options.on_step(i, report);
    }
    const int done = step + together;
    const StepReport& last = all.reports[static_cast<std::size_t>(done) - 1];
    const bool stopped = last.stop_asked;
    all.not_saved = save(plan, team, options, start, done, last, stopped || done == options.steps);
    if (!stopped && all.not_saved.empty()) continue;
    all.reports.resize(static_cast<std::size_t>(done));
    break;
  }
  return all;
}

// The spans of the last step. For TimeMode::Emulated, the cost of each instruction is its median over all steps but the first.
std::vector<RankReport> last_reports(RankThreads& team, const ExecuteOptions& options, int steps) {
  std::vector<RankReport> reports;
  for (std::int32_t r = team.first_rank(); r < team.end_rank(); ++r) {
    const Interpreter& rank = team.rank({r});
    const std::span<const StepSpan> last = rank.spans(steps - 1);
    RankReport report{.spans = {last.begin(), last.end()}, .peak = rank.peak(steps - 1)};
    for (std::size_t s = 0; options.time == TimeMode::Emulated && steps > 2 && s < report.spans.size(); ++s) {
      std::vector<double> costs;
      for (int step = std::max(1, steps - rank.kept_runs()); step < steps; ++step)
        costs.push_back(static_cast<double>(rank.spans(step)[s].own));
      report.spans[s].own = static_cast<std::int64_t>(median(std::move(costs)));
    }
    reports.push_back(std::move(report));
  }
  return options.processes ? gather_reports(*options.processes, reports) : reports;
}

void add_trace(Execution& done, const Plan& plan, const Ranks& ranks, std::vector<RankReport> reports,
               const ExecuteOptions& options) {
  std::vector<std::vector<RankStep>> steps;
  std::vector<RankRun> runs;
  for (std::size_t r = 0; r < reports.size(); ++r) steps.push_back(steps_of(plan, ranks, {static_cast<std::int32_t>(r)}));
  for (std::size_t r = 0; r < reports.size(); ++r) {
    if (reports[r].spans.size() != steps[r].size())
      throw DeviceError("the run", "rank " + std::to_string(r) + " told of " + std::to_string(reports[r].spans.size()) +
                                       " instructions instead of " + std::to_string(steps[r].size()));
    runs.push_back({.steps = &steps[r], .spans = std::move(reports[r].spans)});
    done.peaks.push_back(reports[r].peak);
  }
  if (options.time == TimeMode::Emulated) runs = compose(plan, ranks, std::move(runs), options.link);
  done.result = {.plan = plan,
                 .trace = measured_trace(plan, ranks, std::move(runs)),
                 .granularity = Granularity::Op,
                 .folding = Folding::None,
                 .measured_on = options.measured_on};
  done.result.memory = memory_timeline(plan, done.result.trace);
}

Execution report(const Plan& plan, RankThreads& team, const ExecuteOptions& options, std::vector<StepReport> steps) {
  Execution done{.steps = std::move(steps), .routers = team.routers(), .notes = team.notes(), .workspace = team.workspace()};
  std::vector<RankReport> reports = last_reports(team, options, static_cast<int>(done.steps.size()));
  if (!reports.empty()) add_trace(done, plan, team.ranks(), std::move(reports), options);
  std::vector<double> times;
  times.reserve(done.steps.size());
  for (std::size_t i = done.steps.size() > 1 ? 1 : 0; i < done.steps.size(); ++i) times.push_back(done.steps[i].time_s);
  const double composed = to_seconds(done.result.trace.makespan).value;
  done.iteration_time_s = options.time == TimeMode::Emulated ? composed : median(std::move(times));
  done.result.makespan_s = composed;
  if (options.tensors) {
    done.values = gather_tensors(plan, team.ranks(), team.memories(), TensorPart::Value);
    done.gradients = gather_tensors(plan, team.ranks(), team.memories(), TensorPart::Gradient);
  }
  return done;
}

std::variant<Execution, Infeasible> execute_here(const Plan& plan, const ExecuteOptions& options) {
  check(plan, options);
  if (options.memory_limit)
    if (auto refused = exceeds_limit(plan, *options.memory_limit)) return *refused;
  if (!options.processes && !options.devices)
    if (auto refused = exceeds_machine(plan)) return *refused;
  std::optional<FileLock> lock;
  if (!options.save.empty() && writes_files(options)) lock.emplace(options.save, FileLock::IfHeld::Refuse);
  const TrainingPoint start = options.resume.empty() ? TrainingPoint{.seed = options.seed}
                              : options.resume_point ? *options.resume_point
                                                     : training_point(options.resume, options.processes);
  auto team = std::make_unique<RankThreads>(plan, options, start);
  try {
    StepsDone steps = run_steps(plan, *team, options, start);
    Execution done = report(plan, *team, options, std::move(steps.reports));
    done.first_step = start.step;
    done.not_saved = std::move(steps.not_saved);
    done.stopped = done.not_saved.empty() && static_cast<int>(done.steps.size()) < options.steps;
    return done;
  } catch (const std::exception& problem) {
    // A thread that hangs inside an instruction still uses the memory of the team, so the team is never freed.
    if (!team->ended(problem.what())) static_cast<void>(team.release());
    throw;
  }
}

}  // namespace

std::variant<Execution, Infeasible> execute(const Plan& plan, const ExecuteOptions& options) {
  return telling_others(options.processes, [&] { return execute_here(plan, options); });
}

}  // namespace foreshard
