// foreshard export: writes a strategy as options or as the configuration file of a training framework.
#include <algorithm>
#include <ostream>

#include "cli/job/job.h"
#include "cli/job/notes.h"
#include "cli/parts/framework_words.h"
#include "cli/program/separate_files.h"
#include "core/base/error.h"
#include "core/json/json.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/search/search_framework.h"
#include "strategy/tune/tune.h"
#include "strategy/verdict/verdict.h"

namespace foreshard {

static std::vector<std::string> exported_frameworks() {
  std::vector<std::string> names;
  for (const std::string& name : framework_names())
    if (framework_preset(name).runner && !framework_preset(name).options.empty()) names.push_back(name);
  return names;
}

static std::string read_framework(const Arguments& arguments) {
  const std::string name = arguments.text("--to");
  const std::vector<std::string> known = exported_frameworks();
  if (std::ranges::find(known, name) != known.end()) return name;
  if (name == "accelerate")
    throw Error(kCommandLine, "--to", "accelerate",
                "deepspeed or fsdp2, which Accelerate starts: no options of its own are known");
  const bool preset = std::ranges::find(framework_names(), name) != framework_names().end();
  const std::string nearest = preset ? "" : nearest_name(name, known);
  throw Error(kCommandLine, "--to", name + (preset ? ", of which no options are known" : ""),
              joined(known) + (nearest.empty() ? "" : " (nearest: " + nearest + ")"));
}

static std::string as_json(const std::string& framework, const FrameworkExport& exported) {
  JsonWriter json;
  json.begin_object().field("feasible", true).field("framework", framework).field("version", exported.version);
  json.field("goes_to", exported.goes_to);
  write_framework_words(json, "lines", "notes", exported);
  return json.end_object().text();
}

static ExitCode run_export(const Arguments& given, const Console& console) {
  const std::string file = given.text("STRATEGY"), framework = read_framework(given);
  expect_separate_files(given, {"STRATEGY", "--model", "--cluster"}, {"--save"});
  const Arguments arguments = given.with("--strategy", file);
  Job job = read_job_of_a_plan(arguments);
  if (!std::holds_alternative<Transformer>(job.model.shape))
    throw Error(kCommandLine, "--model", job.model.name + ", a layer list", "a transformer: of others no options are known");
  say_of_job(arguments, job, console);
  const std::string made_for = job.strategy.framework;
  job.strategy.framework = framework;
  const auto answer = tuned_plan(job.model, job.cluster, job.strategy, {.ignore_memory = true});
  if (const auto* infeasible = std::get_if<Infeasible>(&answer)) return refuse(*infeasible, arguments, console);
  const Strategy& strategy = std::get<Lowered>(answer).strategy;
  if (const std::string why = why_not_run_by(*find_runner(framework), strategy); !why.empty())
    return refuse({.reason = framework + " cannot run this strategy: " + why,
                   .would_help = {"foreshard search --framework " + framework + " finds those that it can run"}},
                  arguments, console);
  if (made_for != framework && made_for != Strategy{}.framework)
    say(arguments, console, file + " was made for " + made_for + ": what it leaves open is as " + framework + " does it");
  if (const Verdict judged = verdict(job.model, job.cluster, std::get<Lowered>(answer)); !judged.reason.empty())
    say(arguments, console, std::string("it ") + name_of(judged.kind) + ": " + judged.reason);
  const FrameworkExport exported = *framework_export(job.model, strategy);
  if (!exported.unsaid.empty())
    return refuse({.reason = "an export for " + framework + " does not say " + joined(exported.unsaid) +
                             ": what it starts would be another training"},
                  arguments, console);
  if (given.has("--save")) {
    std::string lines;
    for (const std::string& line : exported.lines) lines += line + "\n";
    write_file(given.text("--save"), lines);
  }
  console.out << (given.flag("--json") ? as_json(framework, exported) : framework_words(framework, exported));
  return ExitCode::Ok;
}

Verb export_verb() {
  Verb verb = {
      .name = "export",
      .summary = "Writes a strategy as the options or the file of a training framework.",
      .notes =
          "Every choice is said, also where it is the framework's default; what no option says stands in notes. A strategy "
          "that the framework cannot run is refused with the reason. Model and cluster are those of the training.",
      .examples = {"foreshard export best.strategy.json --to megatron --model llama-3-8b --cluster dgx-h100"},
      .options =
          {{.name = "STRATEGY", .value = "FILE", .help = "a .strategy.json file (search --save-strategy)", .required = true},
           {.name = "--to", .value = "NAME", .required = true, .read_help = [] { return joined(exported_frameworks()); }}},
      .run = run_export};
  for (const VerbOption& option : job_options())
    for (const char* name : {"--model", "--cluster", "--gpus", "--nodes", "--set"})
      if (option.name == name) verb.options.push_back(option);
  verb.options.push_back({.name = "--save", .value = "FILE", .help = "write the lines, without the notes"});
  verb.options.push_back({.name = "--json", .help = "print JSON"});
  return verb;
}

}  // namespace foreshard
