// Partial sums of tensor parallelism. For every piece of memory the check records what its contents are, as sets of axes:
//   missing   a partial sum: of a product whose weight is cut along the dimension of the sum (or of an embedding with cut rows), of
//             the row sums of a cut vocabulary, or of the gradient of a whole weight from some of the tokens
//   columns   some of the columns: a product whose weight is cut along the other dimension
//   rows      some of the tokens: the result of a reduce-scatter of partial sums, also of one in codes, until an all-gather
//   unknown   perhaps some of the tokens, if the plan scatters tokens, or of the columns of adapters: data from another stage, and products with weights that
//             were gathered into a ring without Buffer::holds, whose history is not known
//   received  the rank's slice of a value from another stage (Exchange::slice), until an all-gather
// Only a reduction, or another such product that adds to it, may access a partial sum, and only an all-gather a received slice.
// Instructions are visited in issue order, as for gradients. A gradient that is no partial sum must not be summed over ranks that have
// equal copies of it.
#include <algorithm>
#include <optional>

#include "core/check/check_plan_rules.h"

namespace foreshard {
namespace {

struct Contents {
  AxisSet missing = 0, columns = 0, rows = 0, unknown = 0, received = 0;
  AxisSet collected = 0;  // members of a collective whose parts lie side by side

  void add(const Contents& other) {
    missing |= other.missing;
    columns |= other.columns;
    rows |= other.rows;
    unknown |= other.unknown;
    received |= other.received;
    collected |= other.collected;
  }
};

class PartialSumCheck {
 public:
  PartialSumCheck(const Plan& plan, RoleId id, const RoleUses& uses, Defects& defects)
      : plan_(plan), role_(plan.roles[id.index()]), id_(id), uses_(uses), defects_(defects), pieces_(uses.pieces()) {
    for (const Buffer& buffer : role_.buffers) cut_ = cut_ || cuts(buffer);
    adapted_ = std::ranges::any_of(plan.tensors, &Tensor::frozen);
    for (const AxisId axis : wide_axes()) alike_ |= is_data(plan_.axes[axis.index()], Grid::Dense) ? 0 : bit(axis);
    for (const AxisId axis : wide_axes()) experts_alike_ |= is_data(plan_.axes[axis.index()], Grid::Expert) ? 0 : bit(axis);
    for (const AxisId axis : wide_axes()) of_experts_ |= is_of_experts(plan_.axes[axis.index()]) ? bit(axis) : 0;
  }

  void run() {
    find_scatters();
    if (!cut_ && alike_ == 0 && experts_alike_ == 0) return;
    for (std::size_t a = 0; a < role_.actions.size() && !defects_.full(); ++a) {
      const Action& action = role_.actions[a];
      const Segment& segment = plan_.segments[action.segment.index()];
      for (std::size_t i = 0; i < segment.instructions.size(); ++i) {
        action_ = static_cast<std::int32_t>(a), instruction_ = static_cast<std::int32_t>(i);
        step(action, segment.instructions[i]);
      }
    }
  }

 private:
  static bool cuts(const Buffer& buffer) {
    return std::ranges::any_of(buffer.holds,
                               [](const Shard& shard) { return shard.part == TensorPart::Value && !shard.split_by.empty(); });
  }

  // The axes over which some role scatters tokens.
  void find_scatters() {
    for (const Segment& segment : plan_.segments)
      for (const Instruction& run : segment.instructions)
        if (const auto* what = std::get_if<Collective>(&run.what); what && what->kind == CollectiveKind::ReduceScatter)
          scattered_ |= wide(plan_.groups[what->group.index()].over) & (alike_ | experts_alike_);
    for (const Action& action : role_.actions)
      for (const Instruction& run : plan_.segments[action.segment.index()].instructions)
        if (const auto* what = std::get_if<Compute>(&run.what); what && adds_parts(what->op) && keeps_values(run))
          scattered_ |= axes_of(what->slice) & (alike_ | experts_alike_);
  }
  AxisSet axes_of(GroupId group) const { return group.valid() ? wide(plan_.groups[group.index()].over) : 0; }
  // It writes what operators read, not what is sent.
  bool keeps_values(const Instruction& run) const {
    return std::ranges::any_of(
        run.writes, [&](const Use& use) { return role_.buffers[use.buffer.index()].category != Category::Communication; });
  }

  std::vector<AxisId> wide_axes() const {
    std::vector<AxisId> axes = role_.axes;
    std::erase_if(axes, [&](AxisId axis) { return plan_.axes[axis.index()].size == 1; });
    return axes;
  }
  AxisSet wide(const std::vector<AxisId>& axes) const {
    AxisSet set = 0;
    for (const AxisId axis : axes)
      if (plan_.axes[axis.index()].size > 1) set |= bit(axis);
    return set;
  }

  // The axes that cut the tensors of kind `part` in a use; with `dim`, only cuts along that dimension. Axes over which experts differ do
  // not count.
  AxisSet cut_of(const Use& use, TensorPart part, int dim = -1) const {
    const Buffer& buffer = role_.buffers[use.buffer.index()];
    const std::int64_t to = use.length ? use.from.value + use.length->value : buffer.bytes.value;
    AxisSet axes = 0;
    for (const Shard& shard : buffer.holds)
      if (shard.at.value >= use.from.value && shard.at.value < to && shard.part == part && shard.flat_by.empty() &&
          (dim < 0 || shard.dim == dim))
        axes |= wide(shard.split_by) & ~others(shard);
    return axes;
  }
  // Ranks of these axes hold other experts.
  AxisSet others(const Shard& shard) const {
    if (plan_.tensors[shard.tensor.index()].grid == Grid::Dense) return 0;
    std::vector<AxisId> axes = shard.split_by;
    std::erase_if(axes, [&](AxisId axis) { return !is_of_experts(plan_.axes[axis.index()]); });
    return wide(axes);
  }
  AxisSet cut_of(const std::vector<Use>& uses, TensorPart part, int dim = -1) const {
    AxisSet axes = 0;
    for (const Use& use : uses) axes |= cut_of(use, part, dim);
    return axes;
  }

  void step(const Action& action, const Instruction& instruction) {
    Contents in;
    for (const RoleUses::Access& access : uses_.of(action.segment, instruction_))
      if (!access.write) for_each_piece(access, action, [&](Contents& piece) { in.add(piece); });
    expect_gathered(instruction, in);
    if (const auto* compute = std::get_if<Compute>(&instruction.what)) {
      compute_step(action, instruction, *compute, in);
    } else if (const auto* collective = std::get_if<Collective>(&instruction.what)) {
      const bool keeps = collective->accumulate;
      if (!plan_.groups[collective->group.index()].roles.empty()) in.unknown |= scattered_;  // from another role
      if (const AxisSet again = summed_alike(instruction, *collective, in); again != 0)
        tell("gradient-over-reduced", "sums a gradient that the ranks have alike, over ", again);
      meet(*collective, std::ranges::any_of(instruction.writes, [&](const Use& use) { return gradient(use); }), in);
      write_all(action, [&](std::size_t, Contents& piece) { keeps ? piece.add(in) : void(piece = in); });
    } else if (std::holds_alternative<Exchange>(instruction.what)) {
      if (in.missing != 0) tell_part("sends", in.missing);
      const GroupId slice = std::get<Exchange>(instruction.what).slice;
      const AxisSet received = slice.valid() ? wide(plan_.groups[slice.index()].over) : 0;
      write_all(action, [&](std::size_t, Contents& piece) { piece = {.unknown = scattered_, .received = received}; });
    } else {
      write_all(action, [&](std::size_t, Contents& piece) { piece = in; });
    }
    for (const Block& block : instruction.releases) {
      const std::size_t first = uses_.piece(block.buffer, value_of(block.slot, action));
      std::fill_n(pieces_.begin() + static_cast<std::ptrdiff_t>(first), uses_.cuts(block.buffer).size() - 1, Contents{});
    }
  }

  // After this nothing in `in` is a received slice.
  void expect_gathered(const Instruction& instruction, Contents& in) {
    const auto* collective = std::get_if<Collective>(&instruction.what);
    if (collective && collective->kind == CollectiveKind::AllGather)
      in.received &= ~wide(plan_.groups[collective->group.index()].over);
    if (in.received != 0)
      tell("slice-not-gathered", "reads a slice that another stage sent and that was not gathered over ", in.received);
    in.received = 0;
  }

  void compute_step(const Action& action, const Instruction& instruction, const Compute& compute, const Contents& in) {
    ops::PartialSums law = partial_sums(compute.op, compute.phase);
    law.pass = law.pass && passes(law, action, instruction);
    if (in.missing != 0 && !law.pass) tell_part("reads", in.missing);
    const AxisSet added = adds_parts(compute.op) ? in.collected : 0;
    Contents out{.missing = law.pass ? in.missing & ~added : 0, .columns = in.columns, .rows = in.rows, .unknown = in.unknown};
    out.rows |= in.missing & added & axes_of(compute.slice);
    if (std::ranges::any_of(instruction.reads, [&](const Use& use) { return gathered(use); }))
      out.unknown |= adapted_ ? alike_ : scattered_;
    if (law.new_columns)  // weights are [out, in]
      out.columns = ops::is_forward(compute.phase) ? cut_of(instruction.reads, TensorPart::Value, 0) : 0;
    const AxisSet summed = law.summed_dim >= 0 ? cut_of(instruction.reads, TensorPart::Value, law.summed_dim) : 0;
    write_all(action, [&](std::size_t w, Contents& piece) {
      Contents made = out;
      const bool passed = w >= 32 || (law.passed >> w & 1U) != 0;
      if (!passed) made.missing = 0;
      if (passed && law.over_experts) made.missing |= of_experts_;
      if (w < 32 && (law.summed >> w & 1U)) made.missing |= summed;
      if (law.summed_columns == static_cast<int>(w)) made.missing |= in.columns;
      if (gradient(instruction.writes[w]))
        made = {.missing =
                    ((in.rows | (law.shared_weights ? in.columns : 0)) & ~cut_of(instruction.writes[w], TensorPart::Gradient)) |
                    out.missing,
                .unknown = out.unknown};
      if (of_weight(compute, w)) made.missing &= in.rows | (law.shared_weights ? in.columns : 0);
      keeps(compute, w) ? piece.add(made) : void(piece = made);
    });
  }
  // Whether the operands of a linear operator let it pass partial sums on.
  bool passes(const ops::PartialSums& law, const Action& action, const Instruction& instruction) {
    if (law.most_operands > 0 && instruction.reads.size() > law.most_operands) return false;
    if (!law.alike) return true;
    std::optional<AxisSet> first;
    bool alike = true;
    for (const RoleUses::Access& access : uses_.of(action.segment, instruction_))
      if (!access.write)
        for_each_piece(access, action, [&](const Contents& piece) {
          alike = alike && piece.missing == first.value_or(piece.missing);
          first = piece.missing;
        });
    return alike;
  }
  bool gradient(const Use& use) const {
    return std::ranges::any_of(role_.buffers[use.buffer.index()].holds,
                               [](const Shard& shard) { return shard.part == TensorPart::Gradient; });
  }
  bool gathered(const Use& use) const {
    const Buffer& buffer = role_.buffers[use.buffer.index()];
    return buffer.category == Category::Parameters && buffer.holds.empty();
  }
  // The axes of a gradient sum over which ranks hold the same tensors and saw the same tokens, so that the sum is not needed.
  AxisSet summed_alike(const Instruction& instruction, const Collective& collective, const Contents& in) const {
    if (!sums(collective) || collective.combine == Combine::Mean) return 0;
    AxisSet alike = 0;
    for (const Use& use : instruction.reads)
      for (const Shard& shard : role_.buffers[use.buffer.index()].holds)
        if (shard.part == TensorPart::Gradient)
          alike |= (plan_.tensors[shard.tensor.index()].grid == Grid::Dense ? alike_ : experts_alike_) & ~wide(shard.split_by);
    return alike & wide(plan_.groups[collective.group.index()].over) & ~in.missing & ~in.unknown;
  }
  static bool sums(const Collective& collective) {
    const bool adds = collective.kind == CollectiveKind::AllReduce || collective.kind == CollectiveKind::ReduceScatter ||
                      collective.kind == CollectiveKind::Reduce;
    return adds && collective.combine != Combine::Max;
  }
  // The gradients of the inputs come first.
  static bool of_weight(const Compute& compute, std::size_t w) {
    return compute.phase == Phase::Backward && w >= static_cast<std::size_t>(gradients(compute.op));
  }
  static bool keeps(const Compute& compute, std::size_t w) {
    return of_weight(compute, w) ? compute.accumulate_weights : compute.accumulate;
  }

  // A reduce-scatter of gradients leaves each rank some of the elements, not some of the tokens.
  void meet(const Collective& collective, bool gradients, Contents& in) const {
    const AxisSet over = wide(plan_.groups[collective.group.index()].over);
    if (collective.kind == CollectiveKind::AllGather) in.rows &= ~over, in.columns &= ~over;
    if (collective.kind == CollectiveKind::AllToAll) in.rows &= ~over;  // each rank has its share of the tokens of all
    if (collective.kind == CollectiveKind::AllGather || collective.kind == CollectiveKind::AllToAll) in.collected |= over;
    if (!sums(collective)) return;
    if (collective.kind == CollectiveKind::ReduceScatter && !gradients) in.rows |= in.missing & over;
    in.missing &= ~over;
  }

  template <class F>
  void write_all(const Action& action, F&& f) {
    std::size_t w = 0;
    for (const RoleUses::Access& access : uses_.of(action.segment, instruction_)) {
      if (!access.write) continue;
      for_each_piece(access, action, [&](Contents& piece) { f(w, piece); });
      ++w;
    }
  }
  template <class F>
  void for_each_piece(const RoleUses::Access& access, const Action& action, F&& f) {
    const std::size_t first =
        uses_.piece(access.buffer, value_of(access.slot, action)) + static_cast<std::size_t>(access.first);
    for (std::size_t p = first; p < first + static_cast<std::size_t>(access.pieces); ++p) f(pieces_[p]);
  }

  void tell_part(const char* does, AxisSet axes) {
    tell("partial-sum", std::string(does) + " a part of a sum that was not reduced over ", axes);
  }
  void tell(const char* rule, const std::string& what, AxisSet axes) {
    std::string names;
    for (std::size_t axis = 0; axis < std::min<std::size_t>(plan_.axes.size(), 64); ++axis)
      if (axes >> axis & 1U) names += (names.empty() ? "" : ", ") + plan_.axes[axis].name;
    defects_.add(rule, id_, action_, instruction_, what + names);
  }

  const Plan& plan_;
  const Role& role_;
  RoleId id_;
  const RoleUses& uses_;
  Defects& defects_;
  bool cut_ = false;                       // some weight is cut at all
  bool adapted_ = false;                   // some tensors are frozen: the others are adapters
  AxisSet alike_ = 0, experts_alike_ = 0;  // axes that are not of data: of dense tensors, of experts
  AxisSet of_experts_ = 0;                 // axes whose ranks hold other experts
  AxisSet scattered_ = 0;
  std::vector<Contents> pieces_;
  std::int32_t action_ = 0, instruction_ = 0;
};

}  // namespace

void check_partial_sums(const Plan& plan, RoleId role, const RoleUses& uses, Defects& defects) {
  PartialSumCheck(plan, role, uses, defects).run();
}

}  // namespace foreshard
