// The table of verbs: cli/program/verb.h.
#include "cli/program/verb.h"
#include "cli/verbs/calibrate.h"
#include "cli/verbs/compare.h"

namespace foreshard {

std::vector<Verb> verbs() {
  return {simulate_verb(),     search_verb(),     sweep_verb(),   ablate_verb(),        partition_verb(),     fit_verb(),
          lower_verb(),        export_verb(),     run_verb(),     compare_verb(),       calibrate_verb(),     selftest_verb(),
          doctor_verb(),       check_plan_verb(), list_verb(),    show_schedule_verb(), show_policies_verb(), show_model_verb(),
          show_cluster_verb(), show_plan_verb(),  validate_verb()};
}

}  // namespace foreshard
