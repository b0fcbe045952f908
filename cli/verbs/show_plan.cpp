// foreshard show plan: prints the contents of a saved plan.
#include <ostream>

#include "cli/program/table.h"
#include "cli/program/verb.h"
#include "core/check/check_plan.h"
#include "core/plan/plan.h"
#include "report/words/text_table.h"

namespace foreshard {

static ExitCode show_plan(const Arguments& arguments, const Console& console) {
  const Plan plan = load_plan(arguments.text("PLAN"));
  const std::string defect = first_defect(plan);
  if (!defect.empty()) console.err << "foreshard: " << arguments.text("PLAN") << ": " << defect << "; the plan is not sound\n";
  const ExitCode code = defect.empty() ? ExitCode::Ok : ExitCode::WrongInput;
  if (arguments.flag("--json")) {
    console.out << to_json(plan);
    return code;
  }
  console.out << "plan " << program_hash(plan) << ": " << counted(plan.stages, "stage") << ", "
              << counted(plan.microbatches, "micro-batch", "micro-batches") << ", " << counted(plan.samples, "sample") << "\n";
  Table axes{{"axis", "size"}, {}};
  for (const Axis& axis : plan.axes) axes.rows.push_back({axis.name, std::to_string(axis.size)});
  Table roles{{"role", "device", "actions", "buffers", "resident"}, {}};
  for (const Role& role : plan.roles) {
    Bytes resident;
    for (const Buffer& buffer : role.buffers)
      if (buffer.resident && buffer.space == Space::Device)
        resident += buffer.bytes * static_cast<std::int64_t>(buffer.offsets.size());
    roles.rows.push_back({role.name, role.device_kind, std::to_string(role.actions.size()), std::to_string(role.buffers.size()),
                          in_size(resident)});
  }
  console.out << "\n" << table_text(axes) << "\n" << table_text(roles);
  return code;
}

Verb show_plan_verb() {
  return {.name = "show plan",
          .summary = "Prints the parallel degrees of a saved plan and, for each pipeline rank, its program and memory.",
          .notes = "A plan that check-plan refuses is shown too, with the first defect; the exit code is then 1.",
          .examples = {"foreshard show plan gpt2.plan.json"},
          .options = {{.name = "PLAN", .value = "PLAN", .help = "a .plan.json file", .required = true},
                      {.name = "--json", .help = "print JSON"}},
          .run = show_plan};
}

}  // namespace foreshard
