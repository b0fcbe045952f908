#include "core/check/check_plan.h"

#include <algorithm>

#include "core/check/check_plan_rules.h"
#include "core/plan/plan_indices.h"

namespace foreshard {

void Defects::add(const char* rule, std::string where, std::string what) {
  if (!full()) found_.push_back({rule, std::move(where), std::move(what)});
}

void Defects::add(const char* rule, RoleId role, std::int32_t action, std::int32_t instruction, std::string what) {
  const Role& r = plan_->roles[role.index()];
  const SegmentId segment = r.actions[static_cast<std::size_t>(action)].segment;
  if (full() || !told_.insert({rule, role.value, segment.value, instruction}).second) return;
  const Segment& s = plan_->segments[segment.index()];
  const auto named = [](const std::string& name) { return name.empty() ? "" : " (" + name + ")"; };
  std::string where = "role " + std::to_string(role.value) + named(r.name) + ", action " + std::to_string(action) +
                      named(s.name) + ", instruction " + std::to_string(instruction) +
                      named(s.instructions[static_cast<std::size_t>(instruction)].name);
  add(rule, std::move(where), std::move(what));
}

std::string block_name(const Role& role, BufferId buffer, std::int32_t slot) {
  const Buffer& b = role.buffers[buffer.index()];
  std::string name = b.name.empty() ? "buffer " + std::to_string(buffer.value) : "\"" + b.name + "\"";
  if (b.offsets.size() > 1) name += " slot " + std::to_string(slot);
  return name;
}

RoleUses::RoleUses(const Plan& plan, const Role& role)
    : accesses_(plan.segments.size()), cuts_(role.buffers.size()), blocks_(role.buffers.size()), pieces_(role.buffers.size()) {
  std::vector<char> played(plan.segments.size(), 0);
  for (const Action& action : role.actions) played[action.segment.index()] = 1;
  cut(plan, role, played);
  for (std::size_t s = 0; s < played.size(); ++s) {
    if (!played[s]) continue;
    for (const Instruction& instruction : plan.segments[s].instructions) {
      std::vector<Access>& accesses = accesses_[s].emplace_back();
      const auto add = [&](const Use& use, bool write) {
        const std::vector<std::int64_t>& cuts = cuts_[use.buffer.index()];
        const std::int64_t size = role.buffers[use.buffer.index()].bytes.value;
        const std::int64_t to = use.length ? use.from.value + use.length->value : size;
        const auto first = std::lower_bound(cuts.begin(), cuts.end(), use.from.value) - cuts.begin();
        const auto last = std::lower_bound(cuts.begin(), cuts.end(), to) - cuts.begin();
        accesses.push_back(
            {use.buffer, use.slot, static_cast<std::int32_t>(first), static_cast<std::int32_t>(last - first), write});
      };
      for (const Use& use : instruction.reads) add(use, false);
      for (const Use& use : instruction.writes) add(use, true);
    }
  }
}

void RoleUses::cut(const Plan& plan, const Role& role, const std::vector<char>& played) {
  for (std::size_t b = 0; b < role.buffers.size(); ++b) {
    const std::int64_t size = role.buffers[b].bytes.value;
    cuts_[b] = {0, size};
    for (const Shard& shard : role.buffers[b].holds) cuts_[b].push_back(std::min(shard.at.value, size));
  }
  for (std::size_t s = 0; s < played.size(); ++s) {
    if (!played[s]) continue;
    for (const Instruction& instruction : plan.segments[s].instructions)
      for (const std::vector<Use>* list : {&instruction.reads, &instruction.writes})
        for (const Use& use : *list) {
          cuts_[use.buffer.index()].push_back(use.from.value);
          if (use.length) cuts_[use.buffer.index()].push_back(use.from.value + use.length->value);
        }
  }
  for (std::size_t b = 0; b < cuts_.size(); ++b) {
    std::sort(cuts_[b].begin(), cuts_[b].end());
    cuts_[b].erase(std::unique(cuts_[b].begin(), cuts_[b].end()), cuts_[b].end());
    blocks_[b] = block_count_, pieces_[b] = piece_count_;
    block_count_ += role.buffers[b].offsets.size();
    piece_count_ += role.buffers[b].offsets.size() * (cuts_[b].size() - 1);
  }
}

namespace {

constexpr std::size_t kMostState = std::size_t{1} << 27U;  // 4-byte entries: half a gigabyte

bool order_fits(const Plan& plan, int runs) {
  std::size_t entries = 0;
  for (const Role& role : plan.roles)
    for (const Action& action : role.actions) {
      entries += static_cast<std::size_t>(runs) * plan.segments[action.segment.index()].instructions.size() *
                 (role.streams.size() + 4);
      if (entries > kMostState) return false;
    }
  return true;
}

void check_role(const Plan& plan, RoleId id, const CheckOrder& order, Defects& defects) {
  const Role& role = plan.roles[id.index()];
  for (const UnboundWait& u : order.unbound())
    defects.add("wait-without-record", id, u.action, u.instruction,
                "waits for event \"" + role.events[u.wait.event.index()].name + "\", which this role never records");
  const RoleUses uses(plan, role);
  if ((uses.pieces() + uses.blocks()) * (role.streams.size() + 2) > kMostState)
    return defects.add("too-large", "role " + std::to_string(id.value), "too many byte ranges times slots to check");
  check_shards(plan, id, defects);
  check_context(plan, id, defects);
  check_tensors(plan, id, defects);
  check_pairs(plan, id, defects);
  check_operands(plan, id, uses, defects);
  check_lives(plan, id, order, uses, defects);
  check_versions(plan, id, order, uses, defects);
  check_gradients(plan, id, uses, defects);
  check_values(plan, id, uses, defects);
  check_contributions(plan, id, uses, defects);
  check_partial_sums(plan, id, uses, defects);
}

}  // namespace

std::vector<PlanDefect> check_plan(const Plan& plan, const CheckPlanOptions& options) {
  Defects defects(plan, options.most_defects);
  if (const std::optional<PlanProblem> bad = first_bad_index(plan)) {
    defects.add("index-out-of-range", bad->path, "found " + bad->found + ", expected " + bad->expected);
    return defects.take();  // nothing else can be read safely
  }
  const int runs = runs_overlap(plan) ? 3 : 2;  // of overlapping runs the middle one begins and ends beside others
  if (!order_fits(plan, runs)) {
    defects.add("too-large", "plan", "too many instructions times streams to check");
    return defects.take();
  }
  std::vector<CheckOrder> orders;
  for (std::size_t r = 0; r < plan.roles.size(); ++r) orders.emplace_back(plan, RoleId{static_cast<std::int32_t>(r)}, runs);
  check_work(plan, options.stale_weights_allowed, defects);
  check_scales(plan, defects);
  check_meetings(plan, orders, defects);
  for (std::size_t r = 0; r < plan.roles.size() && !defects.full(); ++r)
    check_role(plan, RoleId{static_cast<std::int32_t>(r)}, orders[r], defects);
  check_capacity(plan, options, defects);
  return defects.take();
}

static std::string in_words(const PlanDefect& defect) { return defect.where + ": " + defect.what + " [" + defect.rule + "]"; }

std::string first_defect(const Plan& plan) {
  const std::vector<PlanDefect> defects = check_plan(plan, {.most_defects = 1});
  return defects.empty() ? "" : in_words(defects.front());
}

void expect_sound(const Plan& plan) {
  const std::vector<PlanDefect> defects = check_plan(plan, {.most_defects = 1});
  if (!defects.empty() && defects.front().rule != "too-large")
    throw Bug("a plan was lowered that is not sound: " + in_words(defects.front()));
}

}  // namespace foreshard
