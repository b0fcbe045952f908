#include "cli/parts/run_output.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/program/verb.h"
#include "core/json/json.h"
#include "core/plan/plan_words.h"
#include "report/words/text_table.h"

namespace foreshard {

static const MemoryCurve* largest_curve(const Execution& done) {
  const MemoryCurve* largest = nullptr;
  for (const MemoryCurve& curve : done.result.memory.curves)
    if (curve.space == Space::Device && (!largest || sum(curve.peak) > sum(largest->peak))) largest = &curve;
  return largest;
}

// Of the last step; null without experts.
static const ExpertCounts* last_counts(const Execution& done) {
  return done.steps.empty() || done.steps.back().experts.empty() ? nullptr : &done.steps.back().experts;
}

static void write_step(JsonWriter& json, const StepReport& step, const std::vector<RouterName>& routers) {
  json.field("loss", step.loss).field("time_s", step.time_s);
  if (step.loss_scale) json.field("loss_scale", *step.loss_scale).field("skipped", step.skipped);
  if (step.experts.empty()) return;
  const MostLoaded most = most_loaded_of(step.experts);
  json.key("experts").begin_object().field("choices", step.experts.choices()).field("dropped", step.experts.dropped());
  json.field("most_loaded", most.factor).field("layer", routers[most.router].text()).end_object();
}

std::string experts_text(const StepReport& done, const std::vector<RouterName>& routers) {
  if (done.experts.empty()) return "";
  const MostLoaded most = most_loaded_of(done.experts);
  return "most chosen expert " + plain(most.factor) + " times the mean (" + routers[most.router].text() + "), " +
         count_text(std::llround(done.experts.dropped())) + " of " + count_text(std::llround(done.experts.choices())) +
         " choices dropped";
}

// Element `step` of the array "steps" of run_json; printed as soon as the step is done.
std::string step_line(int step, const StepReport& done, const std::vector<RouterName>& routers) {
  JsonWriter json(0);
  write_step(json.begin_object().field("step", step), done, routers);
  return json.end_object().text();
}

std::string run_json(const RunWords& words) {
  const Execution& done = words.done;
  JsonWriter json;
  json.begin_object().field("plan_hash", done.result.trace.plan_hash).field("device", words.gpu.empty() ? "host" : "cuda");
  if (!words.gpu.empty()) json.field("gpu", words.gpu);
  json.key("notes").begin_array();
  for (const std::string& note : done.notes) json.value(note);
  json.end_array();
  json.field("ranks", words.ranks).field("mode", words.time == TimeMode::Wall ? "wall" : "emulated");
  if (words.gpu.empty()) json.field("cores", words.cores);
  json.key("checks").begin_line_array();
  for (const auto& [on, name] : {std::pair(words.checks.guards, "guards"), std::pair(words.checks.poison, "poison")})
    if (on) json.value(name);
  json.end_array();
  json.field("data", words.trained_on).field("first_step", done.first_step).field("stopped", done.stopped);
  json.field("not_saved", done.not_saved);
  json.field("iteration_time_s", done.iteration_time_s);
  json.key("steps").begin_array();
  for (const StepReport& step : done.steps) {
    write_step(json.begin_object(), step, done.routers);
    json.end_object();
  }
  json.end_array();
  json.key("expert_loads").begin_array();
  if (const ExpertCounts* last = last_counts(done))
    for (const std::vector<double>& router : last->loads) {
      json.begin_line_array();
      for (const double load : router) json.value(load);
      json.end_array();
    }
  json.end_array();
  const MemoryCurve* curve = largest_curve(done);
  const LiveBytes peak = curve ? curve->peak : LiveBytes{};
  json.field("peak_memory_bytes", sum(peak).value);
  json.key("memory_by_category").begin_object();
  for (int c = 0; c < kCategories; ++c)
    if (static_cast<Category>(c) != Category::Framework)
      json.field(word(static_cast<Category>(c)), peak[static_cast<std::size_t>(c)].value);
  json.end_object();
  json.field("arena_bytes", curve ? curve->arena.value : std::int64_t{0}).field("workspace_bytes", done.workspace.value);
  return json.end_object().text();
}

static std::string loss_text(const RunWords& words) {
  const std::vector<StepReport>& steps = words.done.steps;
  const auto count = static_cast<int>(steps.size());
  const auto told = [](double loss) { return std::isnan(loss) ? std::string("nan") : plain(loss); };  // never "-nan"
  std::string text = "loss       " + told(steps.front().loss);
  if (count > 1) text += " -> " + told(steps.back().loss);
  text += " after " + counted(count, "step");
  if (const int before = words.done.first_step; before > 0)
    text += " (" + std::to_string(before + 1) + (count > 1 ? " to " + std::to_string(before + count) : std::string()) +
            " of the training)";
  text += " on " + words.trained_on;
  if (const auto& scale = steps.back().loss_scale) {
    const auto skipped = std::count_if(steps.begin(), steps.end(), [](const StepReport& s) { return s.skipped; });
    text += "\nloss scale " + plain(*scale) + ", " + std::to_string(skipped) + " of " + counted(count, "step") + " skipped";
  }
  return text + "\n";
}

std::string run_text(const RunWords& words) {
  const Execution& done = words.done;
  const MemoryCurve* curve = largest_curve(done);
  std::string text = "plan " + done.result.trace.plan_hash + " on " + counted(words.ranks, "rank");
  text += words.gpu.empty() ? " of this host\n" : " on " + words.gpu + "\n";
  text += "iteration  " + in_time({done.iteration_time_s});
  if (words.time == TimeMode::Emulated)
    text += std::string(" (emulated: per-op ") + (words.gpu.empty() ? "CPU" : "GPU") + " time, scheduled along the plan)";
  text += "\n";
  if (curve)
    text += "memory     " + in_size(sum(curve->peak)) + " at the peak of rank " + std::to_string(curve->who.value) +
            ", arena " + in_size(curve->arena) + "\n";
  if (words.checks.guards) text += "checked    no byte was written between blocks\n";
  if (words.checks.poison) text += "checked    dead blocks were filled with NaN\n";
  text += loss_text(words);
  if (last_counts(done)) text += "experts    " + experts_text(done.steps.back(), done.routers) + " in the last step\n";
  const auto lost =
      std::find_if(done.steps.begin(), done.steps.end(), [](const StepReport& s) { return !std::isfinite(s.loss); });
  if (lost != done.steps.end())
    text +=
        "note: the loss is no number from step " + std::to_string(done.first_step + (lost - done.steps.begin()) + 1) + " on\n";
  if (words.gpu.empty() && words.time == TimeMode::Wall && words.ranks_here > words.cores)
    text += "note: " + counted(words.ranks_here, "rank") + " share " + counted(words.cores, "core") +
            " here: wall time is not that of " + counted(words.ranks_here, "device") +
            ", compare predictions with --time emulated\n";
  return text;
}

}  // namespace foreshard
