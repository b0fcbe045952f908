// foreshard show policies: prints the tables into which a strategy is resolved before it is lowered.
#include <algorithm>
#include <ostream>

#include "cli/job/effort.h"
#include "cli/job/job.h"
#include "cli/job/notes.h"
#include "cli/program/table.h"
#include "core/base/count_text.h"
#include "core/json/json.h"
#include "core/plan/ranks.h"
#include "core/strategy/compression.h"
#include "report/words/text_table.h"
#include "strategy/cost/framework_preset.h"
#include "strategy/cost/settle_algorithms.h"
#include "strategy/resolve/tables_text.h"
#include "strategy/server/asynchronous_server.h"
#include "strategy/tune/tune.h"

namespace foreshard {

static std::variant<std::vector<TextOfTable>, Infeasible> tables_of_job(const Job& job) {
  auto tuned = tune(job.model, job.cluster, job.strategy, {.profile = job.measured()});
  if (auto* refused = std::get_if<Infeasible>(&tuned)) return *refused;
  const Tuned& closed = std::get<Tuned>(tuned);
  if (!closed.strategy.stages.empty())
    return Infeasible{.reason = "stages that are said one by one have tables each, of which there is no picture",
                      .would_help = {"leave out strategy.stages"}};
  // Workers of an asynchronous server have the tables of one of them.
  const bool served = closed.strategy.communication.asynchronous;
  const Strategy strategy = served ? worker_of(closed.strategy) : closed.strategy;
  const TunedRows rows = served ? rows_of_worker(closed.strategy, closed.rows) : closed.rows;
  auto graph = graph_of(job.model, strategy);
  if (auto* refused = std::get_if<Infeasible>(&graph)) return *refused;
  const auto tables = tables_of(job.model, strategy, std::get<OpGraph>(graph), rows);
  if (const auto* refused = std::get_if<Infeasible>(&tables)) return *refused;
  std::vector<TextOfTable> texts = texts_of(std::get<StrategyTables>(tables));
  if (TextOfTable moves = moves_text(std::get<StrategyTables>(tables), std::get<OpGraph>(graph)); !moves.rows.empty())
    texts.push_back(std::move(moves));
  return texts;
}

// "4 servers: members 0, 8, 16, 24"; of servers that are the first members only their number.
static std::string servers_of(const Collective& what) {
  std::string text = counted(what.servers, "server");
  for (const std::int32_t member : what.served_by)
    text += (member == what.served_by.front() ? ": members " : ", ") + std::to_string(member);
  return text;
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
    if (one.what.algorithm == Algorithm::ParameterServer) algorithm += ", " + servers_of(one.what);
    out.rows.push_back(
        {one.name, one.group, std::to_string(one.members), in_size(one.what.bytes), algorithm, in_time(one.alone)});
  }
  return {out};
}

static Bytes bytes_of(const Role& role, Category category) {
  Bytes bytes;
  for (const Buffer& buffer : role.buffers)
    if (buffer.category == category) bytes += buffer.bytes * std::ssize(buffer.offsets);
  return bytes;
}

// What each asynchronous server holds, and whom it serves: roles that only update.
static std::vector<TextOfTable> servers_of(const Job& job) {
  if (!job.strategy.communication.asynchronous) return {};
  const auto answer = tuned_plan(job.model, job.cluster, job.strategy, {.ignore_memory = true, .profile = job.measured()});
  const auto* lowered = std::get_if<Lowered>(&answer);
  if (!lowered) return {};
  const Plan& plan = lowered->plan;
  const Ranks ranks(plan);
  const auto trains = [](const Action& action) {
    return std::ranges::any_of(action.does, [](const Does& does) { return does.work != Work::Update; });
  };
  TextOfTable out{.key = "servers",
                  .title = "asynchronous servers, which update and alone have the optimizer's states",
                  .head = {"server", "GPU", "takes gradients of", "sent", "parameters", "gradients", "optimizer"}};
  const Compression& codes = lowered->strategy.communication.gradients;
  for (int r = 0; r < ranks.count(); ++r) {
    const Role& role = plan.roles[ranks.role({r}).index()];
    if (std::ranges::any_of(role.actions, trains)) continue;
    out.rows.push_back(
        {role.name, std::to_string(ranks.device({r}).value), counted(lowered->strategy.dp, "worker") + " in turn",
         codes.codec == Codec::None ? "as they are" : to_text(codes), in_size(bytes_of(role, Category::Parameters)),
         in_size(bytes_of(role, Category::Gradients)), in_size(bytes_of(role, Category::Optimizer))});
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
  for (TextOfTable& more : servers_of(job)) texts.push_back(std::move(more));
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
