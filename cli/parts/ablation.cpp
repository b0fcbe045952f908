#include "cli/parts/ablation.h"

#include <algorithm>
#include <cstdio>

#include "core/base/error.h"
#include "core/json/json.h"
#include "core/network/network.h"
#include "core/plan/ranks.h"
#include "core/result/memory_timeline.h"
#include "core/strategy/strategy_options.h"
#include "replay/replay.h"
#include "report/words/text_table.h"
#include "strategy/tune/tune.h"

namespace foreshard {

namespace {

// The largest number of ranks of a node over which the model's heads and feed-forward columns can be split evenly.
int widest_tensor_group(const Job& job) {
  const auto* transformer = std::get_if<Transformer>(&job.model.shape);
  if (!transformer) return 1;
  for (int tp = job.cluster.nodes.front().shape.gpus; tp > 1; --tp)
    if (transformer->heads % tp == 0 && transformer->kv_heads % tp == 0 && transformer->ffn_hidden % tp == 0) return tp;
  return 1;
}

// "tp 8, parts auto (2)": the settings, with the value chosen for each automatic one.
std::string settings_text(const AblationRow& row) {
  std::string text;
  for (const auto& [path, value] : row.step.settings) {
    text += (text.empty() ? "" : ", ") + path + " " + value;
    const StrategyOption* option = find_option(path);
    if (value == "auto" && option && row.why_not.empty()) text += " (" + option->get(row.strategy) + ")";
  }
  return text.empty() ? "as given" : text;
}

std::string speed_up(const AblationRow& row, const AblationRow* against) {
  if (!row.why_not.empty() || !against || !against->why_not.empty()) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", against->time.value / row.time.value);
  return text;
}

// The last row before row `i` that has a plan; null: none.
const AblationRow* row_before(const std::vector<AblationRow>& rows, std::size_t i) {
  while (i-- > 0)
    if (rows[i].why_not.empty()) return &rows[i];
  return nullptr;
}

}  // namespace

AblationStep parse_step(const std::string& text) {
  const std::size_t colon = text.find(':');
  AblationStep step{.name = text.substr(0, colon)};
  if (step.name.empty()) throw Error(kCommandLine, "--step", "\"" + text + "\"", "NAME:path=value,path=value");
  if (colon == std::string::npos) return step;
  for (std::size_t from = colon + 1; from < text.size();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    const std::string piece = text.substr(from, comma - from);
    const std::size_t equals = piece.find('=');
    if (equals != std::string::npos)
      step.settings.emplace_back(piece.substr(0, equals), piece.substr(equals + 1));
    else if (step.settings.empty())
      throw Error(kCommandLine, "--step", "\"" + text + "\"", "NAME:path=value,path=value");
    else
      step.settings.back().second += "," + piece;
    from = comma + 1;
  }
  Strategy any;
  for (const auto& [path, value] : step.settings)
    set_option(any, path, value, std::string(kCommandLine) + ": --step " + step.name);
  return step;
}

std::vector<AblationStep> default_chain(const Job& job, const std::function<bool(const std::string&)>& said) {
  AblationStep none{.name = "none"};
  const auto says_degrees = [&] {
    return std::ranges::any_of(std::vector<const char*>{"dp", "tp", "pp", "cp", "stages"},
                               [&](const char* path) { return said(path); });
  };
  if (!says_degrees()) none.settings = {{"tp", std::to_string(widest_tensor_group(job))}, {"dp", "1"}};
  if (!said("micro_batch") && !said("global_batch")) none.settings.emplace_back("micro_batch", "8");
  if (!said("attention"))
    none.settings.emplace_back("attention", "unfused");  // token top-k ranks tokens by the attention's probabilities
  return {none,
          {.name = "pipeline", .settings = {{"parts", "auto"}}},
          {.name = "top-k", .settings = {{"compress_activations", "token-topk:0.5"}}},
          {.name = "quantization", .settings = {{"compress_activations", "token-topk:0.5,segmented:8"}}}};
}

Bytes sent_bytes(const Plan& plan) {
  const Ranks ranks(plan);
  double most = 0;
  for (std::size_t r = 0; r < plan.roles.size(); ++r) {
    double sent = 0;
    for (const Action& action : plan.roles[r].actions)
      for (const Instruction& run : plan.segments[action.segment.index()].instructions) {
        if (const auto* exchange = std::get_if<Exchange>(&run.what); exchange && exchange->to)
          sent += static_cast<double>(exchange->bytes.value);
        if (const auto* what = std::get_if<Collective>(&run.what))
          sent += collective_volume(what->kind, what->algorithm, what->bytes,
                                    ranks.members(what->group, RoleId{static_cast<std::int32_t>(r)}))
                      .bytes;
      }
    most = std::max(most, sent);
  }
  return {static_cast<std::int64_t>(most)};
}

AblationRow ablation_row(const Job& job, const AblationStep& step) {
  AblationRow row{.step = step, .strategy = job.strategy};
  auto answer = tuned_plan(job.model, job.cluster, job.strategy, {.profile = job.measured()});
  if (const auto* refused = std::get_if<Infeasible>(&answer)) {
    row.why_not = refused->reason;
    return row;
  }
  auto& [plan, strategy] = std::get<Lowered>(answer);
  row.strategy = strategy;
  row.hash = program_hash(plan);
  row.time = {makespan_of(plan, job.cluster, {.granularity = Granularity::Layer})};
  for (const Role& role : plan.roles) row.peak = std::max(row.peak, arena_bytes(role, Space::Device) + plan.framework);
  row.margin = gpu_of(job.cluster, job.cluster.nodes.front().shape.gpu).memory - plan.reserve - row.peak;
  row.sent = sent_bytes(plan);
  row.defects = check_plan(plan);
  row.plan = std::move(plan);
  return row;
}

std::string ablation_text(const Job& job, const std::vector<AblationRow>& rows, bool unicode) {
  TextTable table{
      .columns = {
          {"step", Align::Left}, {"iteration"}, {"factor"}, {"speed-up"}, {"peak GiB"}, {"sent GiB"}, {"sound", Align::Left}}};
  std::string refused;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const AblationRow& row = rows[i];
    if (!row.why_not.empty()) {
      table.rows.push_back({row.step.name, "-", "-", "-", "-", "-", "-"});
      refused += "  " + wrapped(row.step.name + ": " + row.why_not, 4) + "\n";
      continue;
    }
    table.rows.push_back({row.step.name, in_time(row.time), speed_up(row, row_before(rows, i)), speed_up(row, &rows.front()),
                          in_gib_text(row.peak), in_gib_text(row.sent),
                          row.defects.empty() ? "yes" : "no: " + row.defects.front().rule});
  }
  const std::string note =
      "Each step adds to the ones before it. factor: against the step before; speed-up: against the first, the product of the "
      "factors; peak: of the fullest GPU, with the framework; sent: by the GPU that sends the most, in one iteration; sound: "
      "check_plan finds nothing.";
  std::string settings;
  for (const AblationRow& row : rows) settings += "  " + wrapped(row.step.name + ": " + settings_text(row), 4) + "\n";
  return job.model.name + " on " + job.cluster.name + "\n\n" + table.text(unicode) + "\n" + settings + "  " + wrapped(note, 2) +
         "\n" + (refused.empty() ? "" : "\nNot possible here\n" + refused);
}

std::string ablation_json(const Job& job, const std::vector<AblationRow>& rows) {
  JsonWriter json;
  json.begin_object().field("model", job.model.name).field("cluster", job.cluster.name);
  json.key("steps").begin_array();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const AblationRow& row = rows[i];
    json.begin_object().field("name", row.step.name).key("settings").begin_object();
    for (const auto& [path, value] : row.step.settings) json.field(path.c_str(), value);
    json.end_object().field("feasible", row.why_not.empty());
    if (!row.why_not.empty()) {
      json.field("infeasible_reason", row.why_not).end_object();
      continue;
    }
    const AblationRow* before = row_before(rows, i);
    json.field("iteration_time_s", row.time.value).key("factor");
    before ? json.value(before->time.value / row.time.value) : json.null();
    json.key("speed_up");
    rows.front().why_not.empty() ? json.value(rows.front().time.value / row.time.value) : json.null();
    json.field("peak_memory_bytes", row.peak.value)
        .field("margin_bytes", row.margin.value)
        .field("sent_bytes_per_gpu", row.sent.value);
    json.field("sound", row.defects.empty()).key("defects").begin_array();
    for (const PlanDefect& defect : row.defects) json.value(defect.rule + ": " + defect.where + ": " + defect.what);
    json.end_array().field("plan_hash", row.hash).key("strategy").raw(to_json(row.strategy)).end_object();
  }
  return json.end_array().end_object().text();
}

}  // namespace foreshard
