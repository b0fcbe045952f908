// foreshard show policies: prints the tables into which a strategy is resolved before it is lowered.
#include <algorithm>
#include <ostream>

#include "cli/job/effort.h"
#include "cli/job/job.h"
#include "cli/job/notes.h"
#include "cli/program/table.h"
#include "core/base/count_text.h"
#include "core/json/json.h"
#include "report/words/text_table.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/cost/settle_algorithms.h"
#include "strategy/resolve/tables_text.h"
#include "strategy/tune/tune.h"

namespace foreshard {

static std::variant<std::vector<TextOfTable>, Infeasible> tables_of_job(const Job& job) {
  auto tuned = tune(job.model, job.cluster, job.strategy, {.profile = job.measured()});
  if (auto* refused = std::get_if<Infeasible>(&tuned)) return *refused;
  const Tuned& closed = std::get<Tuned>(tuned);
  if (!closed.strategy.stages.empty())
    return Infeasible{.reason = "stages that are said one by one have tables each, of which there is no picture",
                      .would_help = {"leave out strategy.stages"}};
  auto graph = graph_of(job.model, closed.strategy);
  if (auto* refused = std::get_if<Infeasible>(&graph)) return *refused;
  const auto tables = tables_of(job.model, closed.strategy, std::get<OpGraph>(graph), closed.rows);
  if (const auto* refused = std::get_if<Infeasible>(&tables)) return *refused;
  std::vector<TextOfTable> texts = texts_of(std::get<StrategyTables>(tables));
  if (TextOfTable moves = moves_text(std::get<StrategyTables>(tables), std::get<OpGraph>(graph)); !moves.rows.empty())
    texts.push_back(std::move(moves));
  return texts;
}

// The algorithm of each collective of the plan; nothing if rings were named and all are.
static std::vector<TextOfTable> algorithms_of(const Job& job) {
  if (job.strategy.communication.algorithm == Algorithm::Ring &&
      !framework_preset(job.strategy.framework).messages.nccl_chooses)
    return {};
  const auto answer = tuned_plan(job.model, job.cluster, job.strategy, {.ignore_memory = true, .profile = job.measured()});
  const auto* lowered = std::get_if<Lowered>(&answer);
  if (!lowered) return {};
  TextOfTable out{.key = "algorithms",
                  .title = "algorithms of the plan's collectives, and their time alone",
                  .head = {"collective", "group", "ranks", "size", "algorithm", "alone"}};
  const std::vector<SettledCollective> all = settled_collectives(lowered->plan, job.cluster);
  const bool rings =
      std::ranges::all_of(all, [](const SettledCollective& one) { return one.what.algorithm == Algorithm::Ring; });
  if (rings && job.strategy.communication.algorithm == Algorithm::Ring) return {};
  for (const SettledCollective& one : all) {
    std::string algorithm = name_of(one.what.algorithm);
    if (one.what.algorithm == Algorithm::ParameterServer) algorithm += ", " + counted(one.what.servers, "server");
    out.rows.push_back(
        {one.name, one.group, std::to_string(one.members), in_size(one.what.bytes), algorithm, in_time(one.alone)});
  }
  return {out};
}

static ExitCode run_show_policies(const Arguments& arguments, const Console& console) {
  const Job job = read_job(arguments);
  say_of_job(arguments, job, console);
  refuse_large(effort_of(job, {.kind = WorkKind::Lower}), arguments, "a smaller --global-batch takes less");
  auto answer = tables_of_job(job);
  if (const auto* infeasible = std::get_if<Infeasible>(&answer)) return refuse(*infeasible, arguments, console);
  std::vector<TextOfTable> texts = std::get<std::vector<TextOfTable>>(std::move(answer));
  for (TextOfTable& more : algorithms_of(job)) texts.push_back(std::move(more));
  if (!arguments.flag("--json")) {
    for (std::size_t i = 0; i < texts.size(); ++i)
      console.out << (i == 0 ? "" : "\n") << texts[i].title << "\n\n" << table_text({texts[i].head, texts[i].rows});
    return ExitCode::Ok;
  }
  JsonWriter json;
  json.begin_object().field("feasible", true);
  for (const TextOfTable& text : texts) table_json(json.key(text.key.c_str()), {text.head, text.rows});
  console.out << json.end_object().text();
  return ExitCode::Ok;
}

Verb show_policies_verb() {
  Verb verb = {.name = "show policies",
               .summary =
                   "Prints the tables that a strategy becomes before it is lowered: which ranks meet, the order of work, what "
                   "of parameters, gradients and optimizer states lies where and is summed when, what is made again, and on "
                   "which stream communication runs.",
               .examples = {"foreshard show policies --model gpt2-1.5b --cluster dgx-a100 --pp 2 --zero 1 --global-batch 64"},
               .options = job_options(),
               .run = run_show_policies};
  verb.options.insert(verb.options.end(), {force_option(), {.name = "--json", .help = "print JSON"}});
  return verb;
}

}  // namespace foreshard
