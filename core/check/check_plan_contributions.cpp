// Contributions to gradients: what the backward of one micro-batch writes into a gradient has to reach an optimizer step (or, of a parameter server,
// to be sent), however often it is added, summed over ranks, converted, compressed or moved between memories on the way. What a piece of
// memory holds is a node of a graph:
//
//   leaf      one backward compute wrote one piece
//   sum       what the piece held, and what was added to it
//   mixture   what an instruction read, where it is not known which bytes of it went where (scattered sums, codes)
//
// A node is held by the pieces that contain it and by the nodes made of it. A leaf that nothing holds any more before a step has read it is
// lost. Two runs are followed, because a gradient may wait for the update of the next run.
#include <algorithm>
#include <map>
#include <set>

#include "core/check/check_plan_rules.h"
#include "core/check/contribution_graph.h"

namespace foreshard {
namespace {

bool has_steps(const Segment& segment) {
  return std::ranges::any_of(segment.instructions, [](const Instruction& run) {
    const auto* compute = std::get_if<Compute>(&run.what);
    const auto* host = std::get_if<HostCompute>(&run.what);
    return (compute && is_step(compute->op)) || (host && is_step(host->op));
  });
}
bool has_steps(const Plan& plan) {
  return std::ranges::any_of(plan.segments, [](const Segment& segment) { return has_steps(segment); });
}
bool has_steps(const Plan& plan, const Role& role) {
  return std::ranges::any_of(role.actions,
                             [&](const Action& action) { return has_steps(plan.segments[action.segment.index()]); });
}

class ContributionCheck {
 public:
  ContributionCheck(const Plan& plan, RoleId id, const RoleUses& uses, Defects& defects)
      : plan_(plan),
        role_(plan.roles[id.index()]),
        id_(id),
        uses_(uses),
        defects_(defects),
        pieces_(uses.pieces()),
        steps_(has_steps(plan, role_)) {
    for (std::size_t b = 0; b < role_.buffers.size(); ++b) find_tensors({static_cast<std::int32_t>(b)});
  }

  void run() {
    const bool steps = has_steps(plan_);
    for (run_ = 0; run_ < 2; ++run_) {
      for (std::size_t a = 0; a < role_.actions.size() && !defects_.full(); ++a) {
        const Action& action = role_.actions[a];
        const Segment& segment = plan_.segments[action.segment.index()];
        for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
          action_ = static_cast<std::int32_t>(a), instruction_ = static_cast<std::int32_t>(i);
          step(action, segment.instructions[i]);
        }
      }
    }
    if (!steps || defects_.full()) return;  // a part of a step
    for (const Leaf& leaf : graph_.unused_of_run(0))
      defects_.add("gradient-lost", id_, leaf.action, leaf.instruction, "writes " + name_of(leaf) + ", which no update reads");
    check_microbatches();
  }

 private:
  struct Piece {
    NodeId holds = kNothing;
    bool taken = false;  // a step has read it since it was written
  };
  struct Range {  // bytes of an access, and its pieces
    std::int64_t from = 0, to = 0;
    std::size_t first = 0, last = 0;
    const std::vector<std::int64_t>* cuts = nullptr;
    std::size_t first_cut = 0;
    BufferId buffer = {};
  };

  void find_tensors(BufferId id) {
    const Buffer& buffer = role_.buffers[id.index()];
    std::vector<std::int32_t>& tensors = tensors_.emplace_back(uses_.cuts(id).size() - 1, -1);
    std::vector<const Shard*> shards;
    for (const Shard& shard : buffer.holds)
      if (shard.part == TensorPart::Gradient) shards.push_back(&shard);
    std::ranges::stable_sort(shards, {}, [](const Shard* shard) { return shard->at.value; });
    std::size_t next = 0;
    std::int32_t tensor = shards.empty() ? -1 : shards.front()->tensor.value;
    for (std::size_t p = 0; p < tensors.size(); ++p) {
      for (; next < shards.size() && shards[next]->at.value <= uses_.cuts(id)[p]; ++next) tensor = shards[next]->tensor.value;
      tensors[p] = tensor;
    }
  }

  Range range(const RoleUses::Access& access, const Action& action) const {
    const std::size_t first =
        uses_.piece(access.buffer, value_of(access.slot, action)) + static_cast<std::size_t>(access.first);
    const std::vector<std::int64_t>& cuts = uses_.cuts(access.buffer);
    const auto at = static_cast<std::size_t>(access.first), count = static_cast<std::size_t>(access.pieces);
    return {.from = cuts[at],
            .to = cuts[at + count],
            .first = first,
            .last = first + count,
            .cuts = &cuts,
            .first_cut = at,
            .buffer = access.buffer};
  }

  void step(const Action& action, const Instruction& instruction) {
    const auto* compute = std::get_if<Compute>(&instruction.what);
    reads_.clear(), writes_.clear();
    for (const RoleUses::Access& access : uses_.of(action.segment, instruction_)) {
      const bool bytes = access.write && role_.buffers[access.buffer.index()].dtype == DType::U8;
      if (bytes && compute && !encodes(compute->op)) continue;  // masks, factors in 8 bits
      (access.write ? writes_ : reads_).push_back(range(access, action));
    }
    const auto* host = std::get_if<HostCompute>(&instruction.what);
    if (compute)
      calculate(action, compute->op, compute->phase, *compute);
    else if (host)
      calculate(action, host->op, Phase::Update, {});
    else if (std::holds_alternative<Exchange>(instruction.what))
      take(false), write_all(kNothing, false, writes_.size());
    else
      move(instruction);
    for (const Block& block : instruction.releases) release(block.buffer, value_of(block.slot, action));
  }

  void calculate(const Action& action, const Operation& op, Phase phase, const Compute& settings) {
    if (is_step(op)) {
      take(true);
      return write_all(kNothing, false, writes_.size());
    }
    if (phase == Phase::WeightGrad || phase == Phase::Backward) return differentiate(action, phase, settings);
    const bool passes = phase == Phase::Update || phase == Phase::Other || is<ops::Cast, ops::Encode, ops::Decode>(op);
    if (is<ops::GradNorm>(op)) return add_norm(settings);
    if (is<ops::ClipScale>(op)) return take(false);  // in place
    if (is<ops::JudgeOverflow>(op)) take(false);
    if (!passes || is<ops::JudgeOverflow>(op)) return write_all(kNothing, settings.accumulate, writes_.size());
    if (is<ops::Cast>(op) && !settings.slice.valid()) return map_bytes(settings.accumulate);
    // What a code leaves out waits in the residual for the next run; the codes stand for the gradient.
    write_all(mixture(), settings.accumulate, encodes(op) ? 1 : writes_.size());
  }

  // A part of the norm is lost like a gradient, unless gradients are scaled by it.
  void add_norm(const Compute& settings) {
    const NodeId part = graph_.leaf({.action = action_, .instruction = instruction_, .run = run_});
    write_all(part, settings.accumulate, writes_.size());
  }

  void move(const Instruction& instruction) {
    const auto* collective = std::get_if<Collective>(&instruction.what);
    const auto* copy = std::get_if<Copy>(&instruction.what);
    const bool keeps = collective && collective->accumulate;
    if (collective && is_sent_by_another_role(*collective)) take(false);
    const bool bytes_stay = (copy && !copy->slice.valid()) ||
                            (collective && !collective->slice.valid() &&
                             (collective->kind == CollectiveKind::AllReduce || collective->kind == CollectiveKind::Broadcast ||
                              collective->kind == CollectiveKind::Reduce));
    if (bytes_stay) return map_bytes(keeps);
    write_all(mixture(), keeps, writes_.size());
  }

  // Where servers update, the first stage of those that sum the gradients of a tied embedding sends the sum.
  bool is_sent_by_another_role(const Collective& collective) const {
    const std::vector<RoleId>& roles = plan_.groups[collective.group.index()].roles;
    return collective.kind == CollectiveKind::AllReduce && roles.size() > 1 && roles.front() != id_ && !steps_;
  }

  // Buffer::holds tells the gradients of weights from those of inputs; gathered ones may hold nothing by name.
  void differentiate(const Action& action, Phase phase, const Compute& settings) {
    const bool both = phase == Phase::Backward;
    for (std::size_t w = 0; w < writes_.size(); ++w) {
      const Range& range = writes_[w];
      const bool keeps = both ? settings.accumulate_weights : settings.accumulate;
      for (std::size_t p = range.first; p < range.last; ++p) {
        const std::int32_t tensor = tensors_[range.buffer.index()][range.first_cut + (p - range.first)];
        const bool input = tensor < 0 && role_.buffers[range.buffer.index()].category != Category::Gradients;
        if (input) {
          put(p, kNothing, both ? settings.accumulate : keeps);
          continue;
        }
        if (run_ == 0 && tensor >= 0) note(action, tensor);
        put(p, graph_.leaf({.action = action_, .instruction = instruction_, .tensor = tensor, .run = run_}), keeps);
      }
    }
  }

  // Remembers that this micro-batch contributes to the tensor.
  void note(const Action& action, std::int32_t tensor) {
    const Does* of = nullptr;
    for (const Does& does : action.does) {
      if (does.work == Work::F || does.work == Work::Update) continue;
      if (of && (of->stage != does.stage || of->microbatch != does.microbatch)) return;  // of which of them is not known
      of = &does;
    }
    if (of && of->microbatch >= 0) written_[{of->stage, tensor}].insert(of->microbatch);
  }
  void check_microbatches() {
    std::map<std::int32_t, std::map<std::int32_t, std::int32_t>> backwards;  // [stage][micro-batch]: its last action
    for (std::size_t a = 0; a < role_.actions.size(); ++a)
      for (const Does& does : role_.actions[a].does)
        if (does.work != Work::F && does.work != Work::Update && does.microbatch >= 0)
          backwards[does.stage][does.microbatch] = static_cast<std::int32_t>(a);
    for (const auto& [key, microbatches] : written_)
      for (const auto& [microbatch, action] : backwards[key.first])
        if (!microbatches.contains(microbatch))
          return defects_.add("gradient-lost",
                              "role " + std::to_string(id_.value) + " (" + role_.name + "), action " + std::to_string(action),
                              "the backward of micro-batch " + std::to_string(microbatch) + " does not write " +
                                  name_of({.tensor = key.second}) + ", those of other micro-batches do");
  }

  void take(bool by_step) {
    for (const Range& range : reads_)
      for (std::size_t p = range.first; p < range.last; ++p) {
        Piece& piece = pieces_[p];
        if (piece.holds == kNothing) continue;
        if (by_step && piece.taken)
          tell("gradient-repeated", "reads " + name_of(range, p) + ", which an update has read before");
        piece.taken = by_step;
        graph_.use(piece.holds);
      }
  }

  NodeId mixture() {
    found_.clear();
    for (const Range& range : reads_)
      for (std::size_t p = range.first; p < range.last; ++p) found_.push_back(pieces_[p].holds);
    return graph_.all_of(found_);
  }

  // The first operand written has the bytes of the first one read, in the same order, perhaps in another format.
  void map_bytes(bool keeps) {
    if (reads_.empty() || writes_.empty()) return write_all(mixture(), keeps, writes_.size());
    const Range &from = reads_.front(), &to = writes_.front();
    const double scale = to.to > to.from ? static_cast<double>(from.to - from.from) / static_cast<double>(to.to - to.from) : 0;
    std::vector<NodeId> made;
    std::size_t next = from.first;
    for (std::size_t p = to.first; p < to.last; ++p) {
      const std::size_t cut = to.first_cut + (p - to.first);
      const auto place = [&](std::int64_t byte) {
        return from.from + static_cast<std::int64_t>(static_cast<double>(byte - to.from) * scale);
      };
      const std::int64_t begin = place((*to.cuts)[cut]), end = place((*to.cuts)[cut + 1]);
      const auto last_byte = [&](std::size_t piece) { return (*from.cuts)[from.first_cut + (piece - from.first) + 1]; };
      while (next < from.last && last_byte(next) <= begin) ++next;
      found_.clear();
      for (std::size_t piece = next; piece < from.last; ++piece) {
        found_.push_back(pieces_[piece].holds);
        if (last_byte(piece) >= end) break;
      }
      made.push_back(graph_.all_of(found_));
      graph_.hold(made.back());
    }
    for (std::size_t p = to.first; p < to.last; ++p) put(p, made[p - to.first], keeps);
    for (const NodeId node : made) graph_.drop(node, lost_);
    tell_lost("overwrites");
  }

  void write_all(NodeId node, bool keeps, std::size_t first_writes) {
    graph_.hold(node);
    for (std::size_t w = 0; w < writes_.size(); ++w)
      for (std::size_t p = writes_[w].first; p < writes_[w].last; ++p) put(p, w < first_writes ? node : kNothing, keeps);
    graph_.drop(node, lost_);
    tell_lost("reads, and passes on to nothing,");
  }

  void put(std::size_t p, NodeId node, bool keeps) {
    Piece& piece = pieces_[p];
    if (keeps && piece.taken && node != kNothing) tell("gradient-repeated", "adds to a gradient that an update has read");
    if (keeps && node == kNothing) return;
    NodeId next = node;
    if (keeps && piece.holds != kNothing && node != kNothing) {
      found_.assign({piece.holds, node});
      next = graph_.all_of(found_);
    }
    graph_.hold(next);
    graph_.drop(piece.holds, lost_);
    piece = {.holds = next};
    tell_lost("overwrites");
  }

  void release(BufferId buffer, std::int32_t slot) {
    const std::size_t base = uses_.piece(buffer, slot);
    for (std::size_t p = base; p < base + uses_.cuts(buffer).size() - 1; ++p) {
      graph_.drop(pieces_[p].holds, lost_);
      pieces_[p] = {};
    }
    tell_lost("releases");
  }

  std::string name_of(const Leaf& leaf) const {
    if (leaf.tensor < 0) return "a gradient";
    return "the gradient of \"" + plan_.tensors[static_cast<std::size_t>(leaf.tensor)].name + "\"";
  }
  std::string name_of(const Range& range, std::size_t p) const {
    return name_of(Leaf{.tensor = tensors_[range.buffer.index()][range.first_cut + (p - range.first)]});
  }
  void tell_lost(const std::string& does) {
    for (const Leaf& leaf : lost_)
      tell("gradient-lost", does + " " + name_of(leaf) + " that action " + std::to_string(leaf.action) +
                                " computed, before an update has read it");
    lost_.clear();
  }
  void tell(const char* rule, const std::string& what) { defects_.add(rule, id_, action_, instruction_, what); }

  const Plan& plan_;
  const Role& role_;
  RoleId id_;
  const RoleUses& uses_;
  Defects& defects_;
  std::vector<std::vector<std::int32_t>> tensors_;  // [buffer][piece of a slot]: whose gradient, or -1
  std::map<std::pair<std::int32_t, std::int32_t>, std::set<std::int32_t>> written_;  // [stage, tensor]: micro-batches
  std::vector<Piece> pieces_;
  bool steps_ = false;  // the role updates
  Contributions graph_;
  std::vector<Range> reads_, writes_;
  std::vector<NodeId> found_;
  std::vector<Leaf> lost_;
  std::int32_t action_ = 0, instruction_ = 0, run_ = 0;
};

}  // namespace

void check_contributions(const Plan& plan, RoleId role, const RoleUses& uses, Defects& defects) {
  ContributionCheck(plan, role, uses, defects).run();
}

}  // namespace foreshard
