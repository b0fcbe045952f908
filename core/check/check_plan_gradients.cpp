// Gradients: every byte that a backward writes into a gradient has to be reduced once over each data axis of its tensor's grid, and over
// all roles that hold the tensor, before an optimizer step reads it. For every piece of memory the check records which reductions its
// contents still need; instructions pass this on from their reads to their writes. Instructions are visited in issue order: conflicting
// accesses are ordered (rule access-unordered), and that order agrees with issue order.
#include <algorithm>
#include <bit>
#include <optional>

#include "core/check/check_plan_rules.h"

namespace foreshard {
namespace {

constexpr AxisSet kRoles = AxisSet{1} << 63U;  // stands for the other roles that hold the tensor

struct Piece {
  AxisSet missing = 0;                         // reductions that the contents still need
  AxisSet reduced = 0;                         // reductions that the contents have had
  AxisSet collected = 0;                       // members of a collective whose parts lie side by side here
  const std::vector<RoleId>* roles = nullptr;  // the roles of that collective, or of the sum, if there are several
  bool gradient = false;                       // the contents come from a backward
  AxisSet own_part = 0;                        // over these axes only the rank's own part is a sum: a reduce-scatter in place
  bool pushed = false;                         // an exchange brought the contents, and no update has read them yet
};

// The reductions that a range of a gradient buffer needs, by the tensors in it.
struct Holding {
  std::int32_t tensor = -1;       // the first one, for messages; -1: no gradient
  AxisSet needs = 0, cut_by = 0;  // cut_by: different ranks of these axes hold different elements
  std::vector<RoleId> roles = {};
};

class GradientCheck {
 public:
  GradientCheck(const Plan& plan, RoleId id, const RoleUses& uses, Defects& defects)
      : plan_(plan), role_(plan.roles[id.index()]), id_(id), uses_(uses), defects_(defects), pieces_(uses.pieces()) {
    for (const AxisId id : role_.axes) {
      const Axis& axis = plan.axes[id.index()];
      if (axis.size > 1 && is_data(axis, Grid::Dense)) dense_data_ |= bit(id);
      if (axis.size > 1 && is_data(axis, Grid::Expert)) expert_data_ |= bit(id);
    }
    for (std::size_t b = 0; b < role_.buffers.size(); ++b) hold({static_cast<std::int32_t>(b)});
    receives_.assign(role_.buffers.size(), 0);
    for (const Action& action : role_.actions)
      for (const Instruction& run : plan.segments[action.segment.index()].instructions)
        if (std::holds_alternative<Exchange>(run.what))
          for (const Use& use : run.writes) receives_[use.buffer.index()] = 1;
    for (const Action& action : role_.actions)
      for (const Instruction& run : plan.segments[action.segment.index()].instructions)
        if (is_decoded_from_received(run)) receives_[run.writes.front().buffer.index()] = 1;
  }

  void run() {
    for (std::size_t a = 0; a < role_.actions.size() && !defects_.full(); ++a) {
      const Action& action = role_.actions[a];
      const Segment& segment = plan_.segments[action.segment.index()];
      for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
        here_ = {static_cast<std::int32_t>(a), static_cast<std::int32_t>(i)};
        step(action, segment.instructions[i]);
      }
    }
  }

 private:
  struct Here {
    std::int32_t action = 0, instruction = 0;
  };
  struct Range {
    std::size_t first = 0, last = 0;  // pieces
    BufferId buffer = {};
    std::size_t base = 0;  // first piece of the slot: piece - base indexes holdings_[buffer]
  };

  // Codes that an exchange brought, decoded.
  bool is_decoded_from_received(const Instruction& run) const {
    const auto* compute = std::get_if<Compute>(&run.what);
    return compute && is<ops::Decode>(compute->op) && !run.reads.empty() && !run.writes.empty() &&
           receives_[run.reads.front().buffer.index()] != 0;
  }

  void tell(const char* rule, std::string what) { defects_.add(rule, id_, here_.action, here_.instruction, std::move(what)); }

  void hold(BufferId id) {
    const Buffer& buffer = role_.buffers[id.index()];
    const std::vector<std::int64_t>& cuts = uses_.cuts(id);
    std::vector<Holding>& holdings = holdings_.emplace_back(cuts.size() - 1);
    std::vector<const Shard*> shards;
    bool flat = false;  // with a flat cut, which rank holds which part is unknown: any byte may belong to any tensor
    for (const Shard& shard : buffer.holds) {
      if (shard.part != TensorPart::Gradient) continue;
      shards.push_back(&shard);
      flat = flat || !shard.flat_by.empty();
    }
    std::sort(shards.begin(), shards.end(), [](const Shard* a, const Shard* b) { return a->at < b->at; });
    for (std::size_t s = 0; s < shards.size(); ++s) {
      const std::int64_t from = flat ? 0 : shards[s]->at.value;
      const std::int64_t to = flat || s + 1 == shards.size() ? buffer.bytes.value : shards[s + 1]->at.value;
      for (std::size_t p = 0; p < holdings.size(); ++p)
        if (cuts[p] < to && cuts[p + 1] > from) add(holdings[p], *shards[s]);
    }
  }

  void add(Holding& holding, const Shard& shard) {
    if (holding.tensor < 0) holding.tensor = shard.tensor.value;
    AxisSet cut = 0;
    for (const AxisId axis : shard.split_by) cut |= bit(axis);
    holding.cut_by |= cut;
    holding.needs |= data_axes(plan_.tensors[shard.tensor.index()].grid) & ~cut;
    const std::vector<RoleId>& holders = holders_of(shard.tensor);
    if (holders.size() > 1) holding.needs |= kRoles;
    for (const RoleId role : holders)
      if (std::find(holding.roles.begin(), holding.roles.end(), role) == holding.roles.end()) holding.roles.push_back(role);
  }

  AxisSet data_axes(Grid grid) const { return grid == Grid::Dense ? dense_data_ : expert_data_; }

  const std::vector<RoleId>& holders_of(TensorId tensor) {
    if (holders_.empty()) {
      holders_.resize(plan_.tensors.size());
      for (std::size_t r = 0; r < plan_.roles.size(); ++r)
        for (const Buffer& buffer : plan_.roles[r].buffers)
          for (const Shard& shard : buffer.holds) {
            std::vector<RoleId>& list = holders_[shard.tensor.index()];
            const RoleId role{static_cast<std::int32_t>(r)};
            if (shard.part == TensorPart::Gradient && (list.empty() || list.back() != role)) list.push_back(role);
          }
    }
    return holders_[tensor.index()];
  }

  Range range(const RoleUses::Access& access, const Action& action) const {
    const std::size_t base = uses_.piece(access.buffer, value_of(access.slot, action));
    const std::size_t first = base + static_cast<std::size_t>(access.first);
    return {first, first + static_cast<std::size_t>(access.pieces), access.buffer, base};
  }
  const Holding& holding(const Range& range, std::size_t piece) const {
    return holdings_[range.buffer.index()][piece - range.base];
  }
  std::string tensor_name(const Range& range, std::size_t piece) const {
    const std::int32_t tensor = holding(range, piece).tensor;
    if (tensor < 0) return "the gradients in \"" + role_.buffers[range.buffer.index()].name + "\"";
    return "the gradient of \"" + plan_.tensors[static_cast<std::size_t>(tensor)].name + "\"";
  }
  std::string names(AxisSet axes) const {
    std::string text = axes & kRoles ? "the roles that hold it" : "";
    for (std::size_t a = 0; a < std::min(plan_.axes.size(), kMostAxes); ++a)
      if (axes >> a & 1U) text += (text.empty() ? "" : ", ") + plan_.axes[a].name;
    return text;
  }

  void step(const Action& action, const Instruction& instruction) {
    const auto* compute = std::get_if<Compute>(&instruction.what);
    std::vector<Range>&reads = read_ranges_, &writes = write_ranges_;
    reads.clear(), writes.clear();
    for (const RoleUses::Access& access : uses_.of(action.segment, here_.instruction)) {
      const bool bytes = access.write && role_.buffers[access.buffer.index()].dtype == DType::U8;
      if (bytes && compute && !encodes(compute->op)) continue;  // masks, factors in 8 bits
      (access.write ? writes : reads).push_back(range(access, action));
    }
    Piece in = gather(reads);
    bool keeps = false;  // adds to what the output holds
    in.pushed = is_decoded_from_received(instruction);
    if (compute) {
      keeps = compute->accumulate;
      if ((is_step(compute->op) || is<ops::GradNorm>(compute->op)) && (in.own_part & ~axes_of(compute->slice)) != 0)
        tell("gradient-not-reduced", "reads all of a gradient of which a rank has the sum of its own part only");
      if (is<ops::GradNorm>(compute->op)) in.own_part = 0;  // its result is no part of a tensor
      if (is_step(compute->op))
        in = optimizer(reads);
      else if (compute->phase == Phase::Update && reads_sums(compute->op))
        need_reduced(reads);
      if (adds_parts(compute->op)) add_parts(writes, in);
      in.collected = 0;
    } else if (const auto* host = std::get_if<HostCompute>(&instruction.what)) {
      if (is_step(host->op)) in = optimizer(reads);
    } else if (const auto* collective = std::get_if<Collective>(&instruction.what)) {
      keeps = collective->accumulate;
      reduce(*collective, reads, in);
      if (collective->kind == CollectiveKind::ReduceScatter && in_place(instruction)) in.own_part |= axes_of(collective->group);
      if (collective->kind == CollectiveKind::AllGather) in.own_part &= ~axes_of(collective->group);
      in.collected |= collected_by(*collective);
      if (in.collected & kRoles) in.roles = &plan_.groups[collective->group.index()].roles;
    } else if (std::holds_alternative<Exchange>(instruction.what)) {
      in = {.pushed = true};  // the data come from another rank
    }
    const bool scales = compute && is<ops::ClipScale>(compute->op);  // a gradient, in place: it stays what it is
    if (compute && (compute->phase == Phase::WeightGrad || compute->phase == Phase::Backward))
      write_gradients(writes, *compute);
    else if (!scales)
      write(writes, in, keeps);
    for (const Block& block : instruction.releases) release(block.buffer, value_of(block.slot, action));
  }

  Piece gather(const std::vector<Range>& reads) {
    Piece all;
    for (const Range& range : reads)
      for (std::size_t p = range.first; p < range.last; ++p) {
        all.missing |= pieces_[p].missing;
        all.reduced |= pieces_[p].reduced;
        all.collected |= pieces_[p].collected;
        if (pieces_[p].roles) all.roles = pieces_[p].roles;
        all.gradient = all.gradient || pieces_[p].gradient;
        all.own_part |= pieces_[p].own_part;
      }
    return all;
  }

  // WeightGrad writes parameter gradients. Backward writes input gradients first, then parameter gradients. If Buffer::holds is not empty,
  // it decides. What the gradient held before does not matter here: check_plan_contributions.cpp checks that it is not lost.
  void write_gradients(const std::vector<Range>& writes, const Compute& compute) {
    const bool both = compute.phase == Phase::Backward;
    for (std::size_t w = 0; w < writes.size(); ++w) {
      const Range& range = writes[w];
      for (std::size_t p = range.first; p < range.last; ++p) {
        const Holding& held = holding(range, p);
        const bool input = both && w < static_cast<std::size_t>(gradients(compute.op)) && held.tensor < 0;
        pieces_[p] = input ? Piece{} : Piece{.missing = held.tensor < 0 ? dense_data_ : held.needs, .gradient = true};
      }
    }
  }

  void need_reduced(const std::vector<Range>& reads) {
    for (const Range& range : reads)
      for (std::size_t p = range.first; p < range.last; ++p)
        if (pieces_[p].missing != 0)
          return tell("gradient-not-reduced",
                      "reads " + tensor_name(range, p) + ", not reduced over " + names(pieces_[p].missing));
  }

  Piece optimizer(const std::vector<Range>& reads) {
    need_reduced(reads);
    bool any = false;
    for (const Range& range : reads)
      for (std::size_t p = range.first; p < range.last; ++p)
        any = any || pieces_[p].gradient || (pieces_[p].pushed && holding(range, p).tensor >= 0);
    take_pushed(reads);
    if (!any && (dense_data_ | expert_data_) != 0)
      tell("update-without-gradient",
           "reads no gradient that a backward of this run wrote (buffers that hold gradients say so)");
    return {};
  }

  // A parameter server updates once with each gradient that it receives.
  void take_pushed(const std::vector<Range>& reads) {
    for (const Range& range : reads)
      for (std::size_t p = range.first; p < range.last; ++p) {
        if (!receives_[range.buffer.index()] || holding(range, p).tensor < 0) continue;
        if (!pieces_[p].pushed)
          return tell("update-without-gradient",
                      "reads " + tensor_name(range, p) + ", which no exchange brought since the update before");
        pieces_[p].pushed = false;
      }
  }

  AxisSet axes_of(GroupId group) const {
    AxisSet over = 0;
    if (!group.valid()) return over;
    for (const AxisId axis : plan_.groups[group.index()].over)
      if (plan_.axes[axis.index()].size > 1) over |= bit(axis);
    return over;
  }
  static bool in_place(const Instruction& run) {
    if (run.reads.empty() || run.writes.empty()) return false;
    const Use &from = run.reads[0], &to = run.writes[0];
    return from.buffer == to.buffer && from.slot == to.slot && from.from == to.from;
  }

  AxisSet collected_by(const Collective& collective) const {
    if (collective.kind != CollectiveKind::AllGather && collective.kind != CollectiveKind::AllToAll) return 0;
    AxisSet over = 0;
    for (const AxisId axis : plan_.groups[collective.group.index()].over)
      if (plan_.axes[axis.index()].size > 1) over |= bit(axis);
    return plan_.groups[collective.group.index()].roles.size() > 1 ? over | kRoles : over;
  }

  // Adds up the parts that a collective brought from its members, which is a reduction over them.
  void add_parts(const std::vector<Range>& writes, Piece& in) {
    if (in.gradient && (in.collected & in.reduced) != 0 && !writes.empty())
      tell("gradient-over-reduced", "reduces " + tensor_name(writes.front(), writes.front().first) + " once more over " +
                                        names(in.collected & in.reduced));
    in.missing &= ~in.collected;
    in.reduced |= in.collected;
  }

  void reduce(const Collective& collective, const std::vector<Range>& reads, Piece& in) {
    if (collective.kind != CollectiveKind::AllReduce && collective.kind != CollectiveKind::ReduceScatter &&
        collective.kind != CollectiveKind::Reduce)
      return;
    const Group& group = plan_.groups[collective.group.index()];
    AxisSet over = 0;
    for (const AxisId axis : group.over)
      if (plan_.axes[axis.index()].size > 1) over |= bit(axis);
    const auto in_group = [&](RoleId role) {
      return std::find(group.roles.begin(), group.roles.end(), role) != group.roles.end();
    };
    bool all_roles = group.roles.size() > 1;
    for (const Range& range : reads)
      for (std::size_t p = range.first; p < range.last; ++p) {
        const Holding& held = holding(range, p);
        if (held.tensor < 0) continue;
        for (const RoleId role : held.roles) all_roles = all_roles && in_group(role);
        const bool stranger = std::any_of(group.roles.begin(), group.roles.end(), [&](RoleId role) {
          return std::find(held.roles.begin(), held.roles.end(), role) == held.roles.end();
        });
        if (stranger)
          return tell("gradient-over-reduced", "reduces " + tensor_name(range, p) + " with a role that does not hold it");
        if (over & held.cut_by)
          return tell("gradient-over-reduced",
                      "reduces different parts of " + tensor_name(range, p) + " together, over " + names(over & held.cut_by));
        const AxisSet again = over & pieces_[p].reduced & data_axes(plan_.tensors[static_cast<std::size_t>(held.tensor)].grid);
        if (pieces_[p].gradient && again && collective.combine != Combine::Mean)
          return tell("gradient-over-reduced", "reduces " + tensor_name(range, p) + " once more over " + names(again));
      }
    if (all_roles) over |= kRoles;
    in.missing &= ~over;
    in.reduced |= over;
  }

  void write(const std::vector<Range>& writes, const Piece& in, bool keeps) {
    for (const Range& range : writes)
      for (std::size_t p = range.first; p < range.last; ++p) {
        Piece& piece = pieces_[p];
        if (in.pushed && piece.pushed && holding(range, p).tensor >= 0)
          tell("gradient-lost", "receives " + tensor_name(range, p) + " again before an update read it");
        if (!keeps) piece = {};
        piece.missing |= in.missing;
        if (in.gradient) piece.missing |= holding(range, p).needs & ~reduced(in, holding(range, p));
        // a sum counts as reduced if all its parts are; for a part that is not, `missing` says so
        piece.reduced |= in.reduced;
        piece.collected = in.collected, piece.roles = in.roles;
        piece.gradient = piece.gradient || in.gradient;
        piece.pushed = in.pushed, piece.own_part = in.own_part;
      }
  }

  // Compressed payloads do not name their tensor. Whether all roles that hold it were added is checked where the sum is written.
  static AxisSet reduced(const Piece& in, const Holding& held) {
    if (!in.roles) return in.reduced;
    const auto added = [&](RoleId role) { return std::find(in.roles->begin(), in.roles->end(), role) != in.roles->end(); };
    return std::all_of(held.roles.begin(), held.roles.end(), added) ? in.reduced : in.reduced & ~kRoles;
  }

  void release(BufferId buffer, std::int32_t slot) {
    const std::size_t base = uses_.piece(buffer, slot);
    std::fill_n(pieces_.begin() + static_cast<std::ptrdiff_t>(base), holdings_[buffer.index()].size(), Piece{});
  }

  const Plan& plan_;
  const Role& role_;
  RoleId id_;
  const RoleUses& uses_;
  Defects& defects_;
  AxisSet dense_data_ = 0, expert_data_ = 0;    // of the role, by grid
  std::vector<std::vector<RoleId>> holders_;    // [tensor]
  std::vector<std::vector<Holding>> holdings_;  // [buffer][piece of a slot]
  std::vector<char> receives_;                  // [buffer]: an exchange writes it
  std::vector<Piece> pieces_;
  std::vector<Range> read_ranges_, write_ranges_;
  Here here_;
};

}  // namespace

void check_gradients(const Plan& plan, RoleId role, const RoleUses& uses, Defects& defects) {
  GradientCheck(plan, role, uses, defects).run();
}

}  // namespace foreshard
