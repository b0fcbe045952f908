#include "report/summary/instruction_times.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/plan/cost_tables.h"
#include "core/plan/plan_words.h"

namespace foreshard {

namespace {

constexpr Nanoseconds kNever{-1};

Bytes moved(const Instruction& instruction) {
  if (const auto* collective = std::get_if<Collective>(&instruction.what)) return collective->bytes;
  if (const auto* exchange = std::get_if<Exchange>(&instruction.what)) return exchange->bytes;
  if (const auto* copy = std::get_if<Copy>(&instruction.what)) return copy->bytes;
  return {};
}

bool communicates(const Instruction& instruction) {
  return std::holds_alternative<Collective>(instruction.what) || std::holds_alternative<Exchange>(instruction.what) ||
         std::holds_alternative<Copy>(instruction.what);
}

// Parts of the length of a span, one per instruction.
std::vector<double> parts_of(const std::vector<const Instruction*>& run, const std::vector<double>& isolated, double length) {
  double computes = 0, bytes = 0;
  std::size_t communicating = 0;
  for (std::size_t i = 0; i < run.size(); ++i) {
    communicating += communicates(*run[i]) ? 1 : 0;
    bytes += static_cast<double>(moved(*run[i]).value);
    computes += communicates(*run[i]) ? 0 : isolated[i];
  }
  const double rest = communicating > 0 ? std::max(length - computes, 0.0) : 0.0;
  const double scale = computes > 0 ? (length - rest) / computes : 0.0;
  std::vector<double> parts;
  for (std::size_t i = 0; i < run.size(); ++i) {
    const double share =
        bytes > 0 ? static_cast<double>(moved(*run[i]).value) / bytes : 1.0 / std::max(1.0, double(communicating));
    parts.push_back(communicates(*run[i]) ? rest * share
                    : computes > 0        ? isolated[i] * scale
                    : communicating == 0  ? length / static_cast<double>(run.size())
                                          : 0.0);
  }
  return parts;
}

}  // namespace

InstructionTimes::InstructionTimes(const Plan& plan, const Trace& trace, ClassId who) {
  const Role& role = plan.roles[trace.classes[who.index()].role.index()];
  std::size_t all = 0;
  for (const Action& action : role.actions) {
    first_.push_back(all);
    all += plan.segments[action.segment.index()].instructions.size();
  }
  first_.push_back(all);
  times_.assign(all, {kNever, kNever});
  const auto before = [](const Span& span, ClassId c) { return span.who < c; };  // spans are in the order of their classes
  for (auto s = std::lower_bound(trace.spans.begin(), trace.spans.end(), who, before); s != trace.spans.end() && s->who == who;
       ++s)
    cut(plan, role, *s);
}

void InstructionTimes::cut(const Plan& plan, const Role& role, const Span& span) {
  const auto action = static_cast<std::size_t>(span.action);
  if (span.action < 0 || action >= role.actions.size())
    throw Error("trace", "spans", "action " + std::to_string(span.action), "an action of the plan");
  const SegmentId segment = role.actions[action].segment;
  const std::vector<Instruction>& all = plan.segments[segment.index()].instructions;
  const CostTable* costs = find_costs(plan, role);
  const bool costed = costs && costs->by_segment[segment.index()].size() == all.size();
  std::vector<const Instruction*> run;
  std::vector<std::size_t> members;
  std::vector<double> isolated;
  for (auto i = static_cast<std::size_t>(std::max(span.instruction, 0)); i < all.size(); ++i) {
    if (run.size() == static_cast<std::size_t>(span.count)) break;
    if (all[i].stream != span.stream) continue;
    run.push_back(&all[i]);
    members.push_back(i);
    isolated.push_back(costed ? static_cast<double>(costs->by_segment[segment.index()][i].busy.value) : 0.0);
  }
  if (run.size() != static_cast<std::size_t>(span.count))
    throw Error("trace", "spans", "instruction " + std::to_string(span.instruction), "an instruction of the plan");
  const std::vector<double> parts = parts_of(run, isolated, static_cast<double>((span.end - span.begin).value));
  double passed = 0;
  Nanoseconds from = span.begin;
  for (std::size_t i = 0; i < run.size(); ++i) {
    passed += parts[i];
    const Nanoseconds until = i + 1 == run.size() ? span.end : span.begin + Nanoseconds{static_cast<std::int64_t>(passed)};
    times_[first_[action] + members[i]] = {from, until};
    from = until;
  }
}

std::optional<InstructionTime> InstructionTimes::at(std::int32_t action, std::int32_t instruction) const {
  const InstructionTime& time = times_[first_[static_cast<std::size_t>(action)] + static_cast<std::size_t>(instruction)];
  if (time.begin == kNever) return {};
  return time;
}

std::string op_kind(const Instruction& instruction) {
  struct Kind {
    std::string operator()(const Compute& what) const { return word(what.op) + " " + word(what.phase); }
    std::string operator()(const HostCompute& what) const { return "host " + word(what.op); }
    std::string operator()(const Exchange&) const { return "exchange"; }
    std::string operator()(const Collective& what) const { return word(what.kind); }
    std::string operator()(const Copy&) const { return "copy"; }
    std::string operator()(const Mark&) const { return "mark"; }
  };
  return std::visit(Kind{}, instruction.what);
}

}  // namespace foreshard
