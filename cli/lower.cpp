// foreshard lower: Model + Cluster + Strategy -> a plan file.
#include <ostream>

#include "cli/job.h"
#include "core/json.h"

namespace foreshard {

static std::string summary_json(const Plan& plan, const Strategy& strategy) {
  std::size_t actions = 0, instructions = 0;
  for (const Role& role : plan.roles) actions += role.actions.size();
  for (const Segment& segment : plan.segments) instructions += segment.instructions.size();
  JsonWriter json;
  json.begin_object().field("feasible", true).field("program_hash", program_hash(plan));
  json.field("roles", static_cast<std::int64_t>(plan.roles.size()));
  json.field("segments", static_cast<std::int64_t>(plan.segments.size()));
  json.field("instructions", static_cast<std::int64_t>(instructions));
  json.field("actions", static_cast<std::int64_t>(actions));
  return json.key("strategy").raw(to_json(strategy)).end_object().text();
}

static ExitCode run(const Arguments& arguments, const Console& console) {
  const Job job = read_job(arguments);
  const auto answer = lower(job.model, job.cluster, job.strategy,
                            {.ignore_memory = arguments.flag("--ignore-memory"), .profile = job.measured()});
  if (const auto* infeasible = std::get_if<Infeasible>(&answer)) {
    if (arguments.flag("--json"))
      console.out << infeasible_json(*infeasible);
    else
      complain(*infeasible, console);
    return ExitCode::Infeasible;
  }
  const Lowered& lowered = std::get<Lowered>(answer);
  if (arguments.has("--save-strategy")) write_file(arguments.text("--save-strategy"), to_json(lowered.strategy));
  if (arguments.has("--save-plan")) save_plan(lowered.plan, arguments.text("--save-plan"));
  if (arguments.flag("--json"))
    console.out << summary_json(lowered.plan, lowered.strategy);
  else
    console.out << "plan " << program_hash(lowered.plan) << ": " << lowered.plan.roles.size() << " roles, "
                << lowered.plan.segments.size() << " segments\n";
  return ExitCode::Ok;
}

Verb lower_verb() {
  Verb verb = {.name = "lower",
               .summary = "Turns a model, a cluster and a strategy into a plan: the program that every rank obeys.",
               .examples = {"foreshard lower --model gpt2-124m --cluster dgx-a100 --tp 2 --pp 2 --global-batch 16 "
                            "--save-plan gpt2.plan.json"},
               .options = job_options(),
               .run = run};
  verb.options.insert(verb.options.end(),
                      {{.name = "--ignore-memory", .help = "give the plan even when it does not fit"},
                       {.name = "--save-plan", .value = "FILE", .help = "write the plan"},
                       {.name = "--save-strategy", .value = "FILE", .help = "write the strategy with all defaults resolved"},
                       {.name = "--json", .help = "print JSON"}});
  return verb;
}

}  // namespace foreshard
