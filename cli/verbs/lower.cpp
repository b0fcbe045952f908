// foreshard lower: Model + Cluster + Strategy -> a plan file.
#include <algorithm>
#include <ostream>

#include "cli/job/effort.h"
#include "cli/job/job.h"
#include "cli/job/notes.h"
#include "cli/job/unchanged.h"
#include "cli/program/separate_files.h"
#include "core/cluster_file/cluster_settings.h"
#include "core/json/json.h"
#include "report/words/text_table.h"
#include "strategy/cost/plan_costs.h"
#include "strategy/tune/tune.h"
#include "strategy/verdict/verdict.h"

namespace foreshard {

static std::string layers_text(const RankTrades& rank, const LayerTrade& trade) {
  std::string text;
  for (std::size_t form = 0; form < rank.forms.size(); ++form)
    if (trade.layers[form] > 0)
      text += (text.empty() ? "" : ", ") + std::to_string(trade.layers[form]) + " " + to_text(rank.forms[form]);
  return text;
}

// Some points of the front, evenly spaced, and the chosen point.
static std::vector<LayerTrade> shown(const RankTrades& rank) {
  constexpr std::size_t kRows = 9;
  std::vector<LayerTrade> rows;
  const std::size_t count = std::min(kRows, rank.front.size());
  for (std::size_t i = 0; i < count; ++i) rows.push_back(rank.front[count < 2 ? 0 : i * (rank.front.size() - 1) / (count - 1)]);
  if (std::find(rows.begin(), rows.end(), rank.chosen) == rows.end()) rows.push_back(rank.chosen);
  std::stable_sort(rows.begin(), rows.end(), [](const LayerTrade& a, const LayerTrade& b) { return a.seconds < b.seconds; });
  return rows;
}

static std::string trades_text(const std::vector<RankTrades>& ranks) {
  std::string out;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    TextTable table{.columns = {{"more per backward"}, {"kept, GiB"}, {""}, {"layers", Align::Left}}};
    for (const LayerTrade& trade : shown(ranks[r]))
      table.rows.push_back(
          {in_time(trade.seconds), in_gib_text(trade.kept), trade == ranks[r].chosen ? "*" : "", layers_text(ranks[r], trade)});
    out += "\nPipeline rank " + std::to_string(r) + ": " + std::to_string(ranks[r].front.size()) +
           " trades that no other beats; * fills the memory\n\n" + table.text(false);
  }
  return out;
}

static void trades_json(JsonWriter& json, const std::vector<RankTrades>& ranks) {
  const auto trade = [&](const RankTrades& rank, const LayerTrade& one) {
    json.begin_object().field("seconds", one.seconds.value).field("kept_bytes", one.kept.value);
    json.field("layers", layers_text(rank, one)).end_object();
  };
  json.key("trades").begin_array();
  for (const RankTrades& rank : ranks) {
    json.begin_object().key("chosen");
    trade(rank, rank.chosen);
    json.key("front").begin_array();
    for (const LayerTrade& one : rank.front) trade(rank, one);
    json.end_array().end_object();
  }
  json.end_array();
}

static std::string summary_json(const Lowered& lowered, const std::vector<RankTrades>& trades) {
  const auto& [plan, strategy] = lowered;
  std::size_t actions = 0, instructions = 0;
  for (const Role& role : plan.roles) actions += role.actions.size();
  for (const Segment& segment : plan.segments) instructions += segment.instructions.size();
  JsonWriter json;
  json.begin_object().field("feasible", true).field("program_hash", program_hash(plan));
  json.field("roles", static_cast<std::int64_t>(plan.roles.size()));
  json.field("segments", static_cast<std::int64_t>(plan.segments.size()));
  json.field("instructions", static_cast<std::int64_t>(instructions));
  json.field("actions", static_cast<std::int64_t>(actions));
  if (!trades.empty()) trades_json(json, trades);
  return json.key("strategy").raw(to_json(strategy)).end_object().text();
}

static ExitCode run_lower(const Arguments& arguments, const Console& console) {
  const std::vector<std::string> files = {"--save-plan", "--save-strategy"};
  expect_separate_files(arguments, {"--model", "--cluster", "--strategy", "--profile"}, files);
  expect_folders(arguments, files);
  const Job job = read_job_of_a_plan(arguments);
  say_of_job(arguments, job, console);
  refuse_large(effort_of(job, {.kind = WorkKind::Lower}), arguments, "a smaller --global-batch takes less");
  const LowerOptions options = {.ignore_memory = true, .profile = job.measured(), .settings = job.settings};
  auto tuned = tune(job.model, job.cluster, job.strategy, options);
  const auto* closed = std::get_if<Tuned>(&tuned);
  std::variant<Lowered, Infeasible> answer =
      closed ? lower_tuned(job.model, job.cluster, *closed, options) : std::get<Infeasible>(std::move(tuned));
  if (const auto* made = std::get_if<Lowered>(&answer); made && !arguments.flag("--ignore-memory"))
    if (const Verdict judged = verdict(job.model, job.cluster, *made); judged.kind == Verdict::Kind::DoesNotFit)
      answer = Infeasible{.reason = judged.reason, .would_help = would_help(job)};
  if (const auto* infeasible = std::get_if<Infeasible>(&answer)) return refuse(*infeasible, arguments, console);
  Lowered& lowered = std::get<Lowered>(answer);
  lowered.plan.origin = with_cluster_file(lowered.plan.origin, arguments.text("--cluster"));
  say_all(arguments, console, without_effect(arguments, job, lowered.plan, {}));
  if (arguments.has("--save-strategy")) write_file(arguments.text("--save-strategy"), to_json(lowered.strategy));
  if (arguments.has("--save-plan")) save_plan(lowered.plan, arguments.text("--save-plan"));
  if (arguments.flag("--json"))
    console.out << summary_json(lowered, closed->trades);
  else
    console.out << "plan " << program_hash(lowered.plan) << ": " << counted(std::ssize(lowered.plan.roles), "role") << ", "
                << counted(std::ssize(lowered.plan.segments), "segment") << "\n"
                << trades_text(closed->trades);
  return ExitCode::Ok;
}

Verb lower_verb() {
  Verb verb = {.name = "lower",
               .summary = "Turns a model, a cluster and a strategy into a plan: the program that each rank runs.",
               .examples = {"foreshard lower --model gpt2-124m --cluster dgx-a100 --tp 2 --pp 2 --global-batch 16 "
                            "--save-plan gpt2.plan.json"},
               .options = job_options(),
               .run = run_lower};
  verb.options.insert(verb.options.end(),
                      {force_option(),
                       {.name = "--ignore-memory", .help = "make the plan even when it does not fit"},
                       {.name = "--save-plan", .value = "FILE", .help = "write the plan"},
                       {.name = "--save-strategy", .value = "FILE", .help = "write the strategy with all defaults resolved"},
                       {.name = "--json", .help = "print JSON"}});
  return verb;
}

}  // namespace foreshard
