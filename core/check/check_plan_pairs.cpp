// Instructions that have to say the same. The forward, recomputations and backward of an operator have its settings and number formats; the
// instructions are compared as sets within a layer, so it does not matter which of several equal operators is which. (Their sizes are those
// of their operands: check_plan_operands.cpp.) All updates of a role have the same settings. All losses take one loss scale and all updates
// another, which differ by the number of updates of a run: the gradient of each is a mean over its share of the samples.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/check/check_plan_rules.h"

namespace foreshard {
namespace {

struct At {
  std::int32_t action = 0, instruction = 0;
};
struct SaidOperator {
  const Compute* compute = nullptr;
  At at = {};
  bool matched = false;
};
struct OfLayer {  // operators of one kind in one layer
  std::vector<SaidOperator> forwards = {}, others = {};
};

class PairCheck {
 public:
  PairCheck(const Plan& plan, RoleId id, Defects& defects)
      : plan_(plan), role_(plan.roles[id.index()]), id_(id), defects_(defects) {}

  void run() {
    std::vector<char> seen(plan_.segments.size(), 0);
    for (std::size_t a = 0; a < role_.actions.size(); ++a) {
      const std::size_t segment = role_.actions[a].segment.index();
      if (std::exchange(seen[segment], 1)) continue;
      const std::vector<Instruction>& instructions = plan_.segments[segment].instructions;
      for (std::size_t i = 0; i < instructions.size(); ++i)
        add(instructions[i], {static_cast<std::int32_t>(a), static_cast<std::int32_t>(i)});
    }
    for (auto& [key, layer] : layers_) compare(layer);
  }

 private:
  void add(const Instruction& instruction, At at) {
    const auto* compute = std::get_if<Compute>(&instruction.what);
    if (const auto* host = std::get_if<HostCompute>(&instruction.what)) return add_update(host->op, at);
    if (!compute) return;
    if (is_of_update(compute->op)) return add_update(compute->op, at);
    if (compute->phase == Phase::Update || compute->phase == Phase::Other || is<ops::Cast, ops::Add, ops::Encode, ops::Decode>(compute->op)) return;
    OfLayer& layer = layers_[{instruction.layer.value, static_cast<std::int32_t>(compute->op.index())}];
    std::vector<SaidOperator>& list = compute->phase == Phase::Forward ? layer.forwards : layer.others;
    const bool known = std::ranges::any_of(
        list, [&](const SaidOperator& said) { return said.compute->phase == compute->phase && same(*said.compute, *compute); });
    if (!known) list.push_back({compute, at});
  }

  static bool same(const Compute& a, const Compute& b) {
    return a.op == b.op && std::ranges::equal(a.shapes, b.shapes, {}, &Shape::dtype, &Shape::dtype);
  }

  // An operator without a backward (a piece of a loss, a look-up that is frozen) has no other to compare with.
  void compare(OfLayer& layer) {
    bool backward = false;
    for (const SaidOperator& other : layer.others) {
      if (layer.forwards.empty()) return;  // a part of a plan
      bool found = false;
      for (SaidOperator& forward : layer.forwards)
        if (same(*forward.compute, *other.compute)) found = true, forward.matched = true;
      backward = backward || other.compute->phase != Phase::Recompute;
      if (!found)
        tell(other.at, "differs in settings or formats from every forward of " + word(other.compute->op) + " in its layer");
    }
    if (!backward) return;
    for (const SaidOperator& forward : layer.forwards) {
      const auto* loss = std::get_if<ops::CrossEntropy>(&forward.compute->op);
      const bool alone =
          loss && (loss->piece == ops::CrossEntropy::Piece::Max || loss->piece == ops::CrossEntropy::Piece::Loss);
      if (!forward.matched && !alone)
        tell(forward.at,
             "differs in settings or formats from every backward of " + word(forward.compute->op) + " in its layer");
    }
  }

  void add_update(const Operation& op, At at) {
    if (is<ops::Adam, ops::Sgd, ops::ClipScale, ops::JudgeOverflow, ops::BalanceExperts>(op)) {
      const auto [known, first] = updates_.try_emplace(op.index(), op);
      if (!first && !alike(known->second, op)) tell(at, "has other settings than others of " + word(op));
    }
  }
  // Rates may differ: the rule rate-delay compares them.
  static bool alike(const Operation& a, const Operation& b) {
    const auto either = [](auto one, auto other) { return one == other || one == 0 || other == 0; };  // 0: codes take its place
    if (const auto* adam = std::get_if<ops::Adam>(&a)) return either(adam->frozen_after, std::get<ops::Adam>(b).frozen_after);
    if (const auto* sgd = std::get_if<ops::Sgd>(&a)) return either(sgd->momentum, std::get<ops::Sgd>(b).momentum);
    return a == b;
  }

  void tell(At at, std::string what) { defects_.add("operator-differs", id_, at.action, at.instruction, std::move(what)); }

  const Plan& plan_;
  const Role& role_;
  RoleId id_;
  Defects& defects_;
  std::map<std::pair<std::int32_t, std::int32_t>, OfLayer> layers_;  // [layer, operator]
  std::map<std::size_t, Operation> updates_;                         // [operator]: the first
};

struct Scales {  // of losses, or of updates
  std::optional<double> scale = {};
  bool dynamic = false;
};

class ScaleCheck {
 public:
  ScaleCheck(const Plan& plan, Defects& defects) : plan_(plan), defects_(defects) {}

  void run() {
    for (std::size_t s = 0; s < plan_.segments.size(); ++s)
      for (std::size_t i = 0; i < plan_.segments[s].instructions.size(); ++i) {
        const Instruction& instruction = plan_.segments[s].instructions[i];
        const std::string where = "segment " + std::to_string(s) + " (" + plan_.segments[s].name + "), instruction " +
                                  std::to_string(i) + " (" + instruction.name + ")";
        if (const auto* compute = std::get_if<Compute>(&instruction.what))
          add(compute->op, compute->phase, compute->loss_scale, compute->dynamic_scale, where);
        else if (const auto* host = std::get_if<HostCompute>(&instruction.what))
          add(host->op, Phase::Update, host->loss_scale, false, where);
      }
    const double expected = updates_.scale.value_or(1) * plan_.updates;
    if (losses_.scale && updates_.scale && *losses_.scale != expected)
      defects_.add("operator-differs", "plan",
                   "its losses take a loss scale of " + std::to_string(*losses_.scale) + ", expected " +
                       std::to_string(expected) + ": that of its updates times the updates of a run");
  }

 private:
  void add(const Operation& op, Phase phase, double scale, bool dynamic, const std::string& where) {
    if (!takes_loss_scale(op, phase)) return;
    Scales& of = phase == Phase::Update ? updates_ : losses_;  // a router adds to the loss
    if (!of.scale) of = {scale, dynamic};
    if (*of.scale != scale || of.dynamic != dynamic)
      defects_.add("operator-differs", where,
                   "takes a loss scale of " + std::to_string(scale) + (dynamic ? ", dynamic, others " : ", others ") +
                       std::to_string(*of.scale) + (of.dynamic ? ", dynamic" : ""));
  }

  const Plan& plan_;
  Defects& defects_;
  Scales losses_, updates_;
};

}  // namespace

void check_scales(const Plan& plan, Defects& defects) { ScaleCheck(plan, defects).run(); }

void check_pairs(const Plan& plan, RoleId role, Defects& defects) { PairCheck(plan, role, defects).run(); }

}  // namespace foreshard
