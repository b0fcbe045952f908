#include "gui/document/document.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/cluster_file/cluster_settings.h"
#include "core/json/json.h"
#include "core/json/json_edit.h"
#include "core/result/order_bound.h"
#include "report/summary/memory_rows.h"

namespace foreshard {

namespace {

bool knows_devices(const Cluster& cluster, const Plan& plan) {
  return std::ranges::all_of(plan.roles, [&](const Role& role) {
    return std::ranges::any_of(cluster.gpus, [&](const Gpu& gpu) { return gpu.name == role.device_kind; });
  });
}

// Replaces a cluster whose file was not found: the devices of the plan, as the catalogue describes them if it has them, and no network.
Cluster devices_only(const Plan& plan) {
  Cluster cluster;
  for (const Role& role : plan.roles) {
    if (std::ranges::any_of(cluster.gpus, [&](const Gpu& gpu) { return gpu.name == role.device_kind; })) continue;
    try {
      cluster.gpus.push_back(load_gpu(role.device_kind));
    } catch (const Error&) {
      cluster.gpus.push_back({});
    }
    cluster.gpus.back().name = role.device_kind;
  }
  return cluster;
}

void read_origin(Document& document) {
  const std::string where = document.path + ": plan: origin";
  const std::string& text = document.plan().origin;
  if (text.empty()) return;
  const JsonReader json = JsonReader::parse(text, where);
  if (const auto model = json.find("model")) document.model = model->as_string();
  if (const auto cluster = json.find("cluster")) document.cluster_name = cluster->as_string();
  if (json.has("strategy")) document.strategy_json = json_value(text, "strategy", where);
  if (const auto settings = json.find("settings"))
    for (const JsonReader& setting : settings->elements()) document.settings.push_back(setting.as_string());
  if (json.has("verdict")) document.verdict = parse_verdict(json_value(text, "verdict", where), where);
  if (const auto interval = json.find("prediction_interval"))
    document.interval = {.low = {interval->at("low_s").as_double(0)},
                         .high = {interval->at("high_s").as_double(0)},
                         .rows = static_cast<int>(interval->at("rows").as_int(0, 1'000'000)),
                         .basis = interval->has("basis") ? interval->at("basis").as_string() : "",
                         .extrapolated = interval->at("extrapolated").as_bool()};
  if (const auto notes = json.find("notes"))
    for (const JsonReader& note : notes->elements()) document.notes.push_back(note.as_string());
  const auto workload = json.find("workload");
  if (!workload) return;
  document.workload.tokens_per_sample = workload->at("tokens_per_sample").as_int(0);
  document.workload.model_flops_per_sample = {workload->at("model_flops_per_sample").as_double(0)};
  if (const auto masked = workload->find("masked_flops_per_sample"))
    document.workload.masked_flops_per_sample = {masked->as_double(0)};
  document.workload.parameters = workload->at("parameters").as_int(0);
}

void find_cluster(Document& document, std::optional<Cluster> given) {
  if (given && knows_devices(*given, document.plan())) {
    document.cluster = std::move(given);
    return;
  }
  if (document.cluster_name.empty()) {
    document.remarks.emplace_back("The plan names no cluster: no network and no capacity to compare with.");
    return;
  }
  try {
    Cluster named = cluster_of_origin(document.plan().origin, document.path + ": plan: origin");
    if (knows_devices(named, document.plan()))
      document.cluster = std::move(named);
    else
      document.remarks.push_back("Cluster " + document.cluster_name + " has none of the devices that the plan uses.");
  } catch (const Error& error) {
    document.remarks.emplace_back(error.what());
  }
}

// Computes the peaks of a result that has no memory timeline. The memory view computes the events, for one class at a time.
void fill_memory(Result& result) {
  if (result.memory.curves.empty()) result.memory = memory_timeline(result.plan, result.trace, {.events = false});
}

}  // namespace

std::span<const Bubble> Document::pieces_of(ClassId who) const {
  const auto range = std::ranges::equal_range(pieces, who, {}, &Bubble::who);
  return {range.begin(), range.end()};
}

std::span<const Bubble> Document::pieces_of(const Bubble& bubble) const {
  const std::span<const Bubble> all = pieces_of(bubble.who);
  const auto first = std::ranges::lower_bound(all, bubble.begin, {}, &Bubble::begin);
  return {first, std::ranges::lower_bound(first, all.end(), bubble.end, {}, &Bubble::begin)};
}

std::shared_ptr<const Document> make_document(Result result, std::string path, std::optional<Cluster> cluster) {
  auto document = std::make_shared<Document>();
  document->path = std::move(path);
  document->result = std::move(result);
  read_origin(*document);
  find_cluster(*document, std::move(cluster));
  fill_memory(document->result);
  const Cluster stand_in = document->cluster ? Cluster{} : devices_only(document->plan());
  document->summary = summarize(document->result, document->cluster ? *document->cluster : stand_in, document->workload,
                                order_bounds(document->plan()));
  if (document->summary.fit.capacity == Bytes{}) {  // an unknown device: nothing can be said about what fits
    judge(document->summary, {});
    document->summary.fit.margin = {};
  }
  if (document->verdict) judge(document->summary, *document->verdict);
  if (document->trace().origin == Origin::Simulated) {
    document->summary.prediction_interval = document->interval;
    document->remarks.insert(document->remarks.end(), document->notes.begin(), document->notes.end());
  }
  document->bindings = bind_spans(document->plan(), document->trace());
  document->pieces = find_bubbles(document->plan(), document->trace(), document->bindings);
  document->bubbles = whole_bubbles(document->pieces);
  document->lanes = make_lanes(document->plan(), document->trace(), document->bubbles);
  document->critical = critical_chain(document->trace(), document->bindings);
  document->critical_times = path_times(document->plan(), document->trace(), document->critical);
  return document;
}

std::shared_ptr<const Document> load_document(const std::string& path) { return make_document(load_result(path), path); }

}  // namespace foreshard
