// foreshard ablate: the effect of each technique of a chain.
#include <algorithm>
#include <ostream>

#include "cli/job/effort.h"
#include "cli/job/job.h"
#include "cli/job/notes.h"
#include "cli/job/unchanged.h"
#include "cli/parts/ablation.h"
#include "cli/program/interrupt.h"
#include "cli/program/progress.h"
#include "cli/program/terminal.h"
#include "core/base/error.h"

namespace foreshard {

namespace {

std::vector<AblationStep> read_chain(const Arguments& arguments, const Job& job) {
  std::vector<AblationStep> chain;
  for (const std::string& text : arguments.all("--step")) {
    chain.push_back(parse_step(text));
    if (std::ranges::count(chain, chain.back().name, &AblationStep::name) > 1)
      throw Error(kCommandLine, "--step", "\"" + text + "\"", "each name once");
  }
  if (!chain.empty()) return chain;
  return default_chain(job, [&](const std::string& path) {
    const StrategyOption& option = *find_option(path);
    return given(arguments, option) || option.get(job.strategy) != option.get(Strategy{});
  });
}

// Prints a note for each step that did not change the plan, because the user probably expects a change.
void say_unchanged(const Arguments& arguments, const Console& console, const std::vector<AblationRow>& rows) {
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (rows[i].why_not.empty() && rows[i].hash == rows[i - 1].hash && rows[i].time == rows[i - 1].time)
      say(arguments, console, "step " + rows[i].step.name + " changes nothing here: its plan is that of the step before it");
}

ExitCode run_ablate(const Arguments& arguments, const Console& console) {
  watch_interrupt();
  Job job = read_job(arguments);
  const std::vector<AblationStep> chain = read_chain(arguments, job);
  say_of_job(arguments, job, console);
  std::vector<AblationRow> rows;
  std::vector<std::string> notes;
  {
    Progress progress(arguments.choice("--progress", "auto", progress_modes()), console);
    for (const AblationStep& step : chain) {
      if (interrupted()) break;
      for (const auto& [path, value] : step.settings) set_option(job.strategy, path, value, kCommandLine);
      refuse_large(effort_of(job, {.kind = WorkKind::Simulate}), arguments, "a smaller --global-batch takes less");
      rows.push_back(ablation_row(job, step));
      if (rows.size() == 1 && rows[0].why_not.empty()) notes = without_effect(arguments, job, rows[0].plan, {});
      rows.back().plan = {};
      progress.report(static_cast<double>(rows.size()) / static_cast<double>(chain.size()));
    }
  }
  say_all(arguments, console, notes);
  say_unchanged(arguments, console, rows);
  console.out << (arguments.flag("--json") ? ablation_json(job, rows) : ablation_text(job, rows, terminal_takes_unicode()));
  if (interrupted()) return ExitCode::Interrupted;
  const bool any = std::ranges::any_of(rows, [](const AblationRow& row) { return row.why_not.empty(); });
  return any ? ExitCode::Ok : ExitCode::Infeasible;
}

}  // namespace

Verb ablate_verb() {
  Verb verb = {
      .name = "ablate",
      .summary = "Adds techniques one after another and says what each is worth: time, memory, bytes sent.",
      .notes =
          "A step has a name and settings of the strategy (paths of `foreshard list options`), which are added to those of the "
          "steps "
          "before it. Without --step: none; operators in parts that overlap with the sums of tensor parallelism; sums of the "
          "rows of half of "
          "the tokens; these rows in 8 bits.",
      .examples = {"foreshard ablate --model bert-large --cluster dgx-a100",
                   "foreshard ablate --model gpt2-1.5b --cluster dgx-a100 --tp 5 --dp 1 --micro-batch 8 --step whole --step "
                   "overlap:overlap=grad,p2p,tp --step parts:parts=2,4"},
      .options = job_options(),
      .run = run_ablate};
  verb.options.insert(verb.options.end(), {force_option(),
                                           {.name = "--step",
                                            .value = "NAME:PATH=V,...",
                                            .help = "a step of the chain, with what it adds; may be repeated",
                                            .repeatable = true},
                                           {.name = "--json", .help = "print JSON"},
                                           progress_option()});
  return verb;
}

}  // namespace foreshard
