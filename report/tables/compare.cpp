#include "report/tables/compare.h"

#include <algorithm>
#include <limits>
#include <map>

#include "core/base/error.h"
#include "report/causes/bubbles.h"
#include "report/summary/instruction_times.h"
#include "report/words/devices.h"
#include "report/words/span_words.h"

namespace foreshard {

double Compared::signed_error() const {
  if (measured != 0) return predicted / measured - 1;
  return predicted == 0 ? 0 : std::numeric_limits<double>::infinity();
}

namespace {

void check_same_plan(const Result& predicted, const Result& measured, const CompareOptions& options) {
  if (predicted.trace.plan_hash != measured.trace.plan_hash)
    throw Error(options.measured_name, "plan_hash", measured.trace.plan_hash,
                predicted.trace.plan_hash + ", the plan of " + options.predicted_name);
  for (const auto& [result, name] : {std::pair{&predicted, &options.predicted_name}, {&measured, &options.measured_name}})
    if (result->trace.spans.empty()) throw Error(*name, "spans", "none", "the spans of a run");
}

struct Bubbles {
  double all = 0;
  std::array<double, kBubbleCauses> causes = {};
};

// Shares of the makespan, mean over ranks.
Bubbles bubbles_of(const Result& result) {
  const Trace& trace = result.trace;
  double ranks = 0;
  for (const RankClass& c : trace.classes) ranks += static_cast<double>(c.members.size());
  const double whole = ranks * static_cast<double>(trace.makespan.value);
  Bubbles bubbles;
  if (whole <= 0) return bubbles;
  for (const Bubble& bubble : find_bubbles(result.plan, trace, bind_spans(result.plan, trace))) {
    const auto members = static_cast<double>(trace.classes[bubble.who.index()].members.size());
    const double share = members * static_cast<double>((bubble.end - bubble.begin).value) / whole;
    bubbles.all += share;
    bubbles.causes[static_cast<std::size_t>(bubble.cause)] += share;
  }
  return bubbles;
}

LiveBytes largest_peak(const Result& result) {
  LiveBytes largest = {};
  for (const MemoryCurve& curve : result.memory.curves)
    if (curve.space == Space::Device && sum(curve.peak) > sum(largest)) largest = curve.peak;
  return largest;
}

double in_seconds(Nanoseconds time) { return to_seconds(time).value; }

// Goes through the instructions of a pair of classes.
class Joiner {
 public:
  Joiner(const Result& predicted, const Result& measured, Comparison& into)
      : predicted_(predicted), measured_(measured), into_(into) {}

  void join(const ClassPair& pair) {
    const Plan& plan = predicted_.plan;
    const InstructionTimes a(plan, predicted_.trace, pair.predicted), b(plan, measured_.trace, pair.measured);
    const Role& role = plan.roles[predicted_.trace.classes[pair.predicted.index()].role.index()];
    for (std::size_t n = 0; n < role.actions.size(); ++n) {
      const std::vector<Instruction>& all = plan.segments[role.actions[n].segment.index()].instructions;
      for (std::size_t i = 0; i < all.size(); ++i) {
        const auto action = static_cast<std::int32_t>(n), instruction = static_cast<std::int32_t>(i);
        if (std::holds_alternative<Mark>(all[i].what)) continue;
        const auto left = a.at(action, instruction), right = b.at(action, instruction);
        if (left.has_value() != right.has_value()) into_.without_twin += pair.ranks;
        if (left && right) add(pair, role, action, instruction, all[i], *left, *right);
      }
    }
  }

  void finish(std::size_t most_spans) {
    for (auto& [kind, row] : kinds_) into_.op_kinds.push_back(std::move(row));
    std::stable_sort(into_.op_kinds.begin(), into_.op_kinds.end(),
                     [](const ComparedKind& x, const ComparedKind& y) { return x.seconds.measured > y.seconds.measured; });
    const auto larger = [](const ComparedSpan& x, const ComparedSpan& y) {
      return std::abs(x.seconds.difference()) > std::abs(y.seconds.difference());
    };
    std::stable_sort(into_.spans.begin(), into_.spans.end(), larger);
    if (into_.spans.size() > most_spans) into_.spans.resize(most_spans);
    for (ComparedSpan& span : into_.spans) name(span);
  }

 private:
  void add(const ClassPair& pair, const Role&, std::int32_t action, std::int32_t instruction, const Instruction& what,
           const InstructionTime& left, const InstructionTime& right) {
    const Compared seconds{in_seconds(left.end - left.begin), in_seconds(right.end - right.begin)};
    ComparedKind& row = kinds_[op_kind(what)];
    row.kind = op_kind(what);
    row.instructions += pair.ranks;
    row.seconds.predicted += seconds.predicted * pair.ranks;
    row.seconds.measured += seconds.measured * pair.ranks;
    into_.joined += pair.ranks;
    into_.spans.push_back({.rank = pair.first,
                           .ranks = pair.ranks,
                           .action = action,
                           .instruction = instruction,
                           .begin = {in_seconds(left.begin), in_seconds(right.begin)},
                           .seconds = seconds});
  }

  void name(ComparedSpan& span) const {
    const Plan& plan = predicted_.plan;
    for (const RankClass& c : predicted_.trace.classes) {
      if (std::find(c.members.begin(), c.members.end(), span.rank) == c.members.end()) continue;
      const Role& role = plan.roles[c.role.index()];
      const Action& action = role.actions[static_cast<std::size_t>(span.action)];
      const Instruction& what = plan.segments[action.segment.index()].instructions[static_cast<std::size_t>(span.instruction)];
      span.action_name = action_name(plan, action);
      span.instruction_name = what.name;
      if (what.layer.valid() && what.layer.index() < role.layers.size())
        span.instruction_name = role.layers[what.layer.index()] + " " + what.name;
      return;
    }
  }

  const Result& predicted_;
  const Result& measured_;
  Comparison& into_;
  std::map<std::string, ComparedKind> kinds_ = {};
};

}  // namespace

std::vector<ClassPair> class_pairs(const Trace& predicted, const Trace& measured) {
  const auto classes_of = [](const Trace& trace) {
    std::vector<std::int32_t> of;
    for (std::size_t c = 0; c < trace.classes.size(); ++c)
      for (const RankId rank : trace.classes[c].members) {
        if (of.size() <= rank.index()) of.resize(rank.index() + 1, -1);
        of[rank.index()] = static_cast<std::int32_t>(c);
      }
    return of;
  };
  const std::vector<std::int32_t> a = classes_of(predicted), b = classes_of(measured);
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> known;
  std::vector<ClassPair> pairs;
  for (std::size_t r = 0; r < std::min(a.size(), b.size()); ++r) {
    if (a[r] < 0 || b[r] < 0) continue;
    const auto [place, fresh] = known.try_emplace({a[r], b[r]}, pairs.size());
    if (fresh) pairs.push_back({{a[r]}, {b[r]}, {static_cast<std::int32_t>(r)}, 0});
    ++pairs[place->second].ranks;
  }
  return pairs;
}

Comparison compare(const Result& predicted, const Result& measured, const CompareOptions& options) {
  check_same_plan(predicted, measured, options);
  const Bubbles idle_a = bubbles_of(predicted), idle_b = bubbles_of(measured);
  const LiveBytes peak_a = largest_peak(predicted), peak_b = largest_peak(measured);
  const auto bytes = [](Bytes a, Bytes b) { return Compared{static_cast<double>(a.value), static_cast<double>(b.value)}; };
  Comparison comparison{.plan_hash = predicted.trace.plan_hash,
                        .predicted = predicted.trace.origin,
                        .measured = measured.trace.origin,
                        .predicted_device = device_words(predicted),
                        .measured_device = device_words(measured),
                        .same_device = same_device(predicted, measured),
                        .iteration_time = {in_seconds(predicted.trace.makespan), in_seconds(measured.trace.makespan)},
                        .bubble = {idle_a.all, idle_b.all},
                        .memory = bytes(sum(peak_a), sum(peak_b))};
  for (std::size_t c = 0; c < kBubbleCauses; ++c) comparison.bubble_by_cause[c] = {idle_a.causes[c], idle_b.causes[c]};
  for (std::size_t c = 0; c < kCategories; ++c) comparison.memory_by_category[c] = bytes(peak_a[c], peak_b[c]);
  Joiner joiner(predicted, measured, comparison);
  for (const ClassPair& pair : class_pairs(predicted.trace, measured.trace)) {
    comparison.ranks += pair.ranks;
    joiner.join(pair);
  }
  joiner.finish(options.most_spans);
  return comparison;
}

}  // namespace foreshard
