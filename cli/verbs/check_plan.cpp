// foreshard check-plan: is a saved plan sound?
#include "core/check/check_plan.h"

#include <ostream>

#include "cli/program/verb.h"
#include "core/base/error.h"
#include "core/check/plan_cluster.h"
#include "core/cluster/cluster.h"
#include "core/cluster_file/cluster_file.h"
#include "core/json/json.h"

namespace foreshard {

static CheckPlanOptions options_of(const Arguments& arguments, const Plan& plan) {
  CheckPlanOptions options;
  options.most_defects = static_cast<int>(arguments.integer("--most", options.most_defects, 1, 1'000'000));
  options.stale_weights_allowed = arguments.flag("--stale-weights");
  if (!arguments.has("--cluster")) return options;
  const Cluster cluster = load_cluster(arguments.text("--cluster"));
  if (const std::string why = gpus_differ(plan, cluster); !why.empty()) throw Error(arguments.text("PLAN") + ": " + why);
  for (const Gpu& gpu : cluster.gpus) options.capacity[gpu.name] = gpu.memory;
  options.host_capacity = cluster.nodes.front().shape.host_memory;
  options.ranks_per_node = cluster.nodes.front().shape.gpus;
  return options;
}

static std::string as_json(const std::vector<PlanDefect>& defects) {
  JsonWriter json;
  json.begin_object().field("sound", defects.empty()).key("defects").begin_array();
  for (const PlanDefect& defect : defects)
    json.begin_object().field("rule", defect.rule).field("where", defect.where).field("what", defect.what).end_object();
  return json.end_array().end_object().text();
}

static ExitCode run_check_plan(const Arguments& arguments, const Console& console) {
  const Plan plan = load_plan(arguments.text("PLAN"));
  const std::vector<PlanDefect> defects = check_plan(plan, options_of(arguments, plan));
  if (arguments.flag("--json")) {
    console.out << as_json(defects);
  } else {
    for (const PlanDefect& defect : defects) console.out << defect.where << ": " << defect.what << " [" << defect.rule << "]\n";
    console.out << "plan " << program_hash(plan) << ": " << (defects.empty() ? "sound" : "not sound") << "\n";
  }
  return defects.empty() ? ExitCode::Ok : ExitCode::WrongInput;
}

Verb check_plan_verb() {
  return {.name = "check-plan",
          .summary = "Checks a saved plan: order, matching, memory, every gradient reduced before it is used.",
          .notes = "Exit code 0 when it is sound, 1 when it is not.",
          .examples = {"foreshard check-plan gpt2.plan.json --cluster dgx-a100"},
          .options = {{.name = "PLAN", .value = "PLAN", .help = "a .plan.json file", .required = true},
                      {.name = "--cluster",
                       .value = "NAME|FILE",
                       .help = "check that it has the GPUs and the memory of GPUs and hosts, too"},
                      {.name = "--stale-weights", .help = "backwards may use other weights than their forwards (PipeMare)"},
                      {.name = "--most", .value = "N", .help = "print at most N defects (default 20)"},
                      {.name = "--json", .help = "print JSON"}},
          .run = run_check_plan};
}

}  // namespace foreshard
