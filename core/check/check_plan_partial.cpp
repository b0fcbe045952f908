// Partial sums of tensor parallelism. Every piece of memory carries what its contents are, over which axes:
//   missing   a part of a sum: of a product whose weight is cut along the dimension that it sums over (or of an embedding with
//             cut rows), of the row sums of a cut vocabulary, or of the gradient of a whole weight from some of the tokens
//   columns   some of the columns: a product whose weight is cut along the other dimension
//   rows      some of the tokens: what a reduce-scatter of partial sums leaves, until an all-gather
// Nothing but a reduction, or another such product that adds to it, may touch what is missing. Issue order is enough, as for
// gradients. Weights gathered into a ring do not say what they hold and what another stage sends has no history: neither is
// followed.
#include <algorithm>

#include "core/check/check_plan_rules.h"

namespace foreshard {
namespace {

using AxisSet = std::uint64_t;  // bit per axis; axes past 63 are not looked at

AxisSet bit(AxisId axis) { return axis.index() < 64 ? AxisSet{1} << axis.index() : 0; }

struct Piece {
  AxisSet missing = 0, columns = 0, rows = 0;

  void add(const Piece& other) {
    missing |= other.missing;
    columns |= other.columns;
    rows |= other.rows;
  }
};

class PartialSumCheck {
 public:
  PartialSumCheck(const Plan& plan, RoleId id, const RoleUses& uses, Defects& defects)
      : plan_(plan), role_(plan.roles[id.index()]), id_(id), uses_(uses), defects_(defects), pieces_(uses.pieces()) {
    for (const Buffer& buffer : role_.buffers) cut_ = cut_ || cuts(buffer);
  }

  void run() {
    if (!cut_) return;
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

  AxisSet wide(const std::vector<AxisId>& axes) const {
    AxisSet set = 0;
    for (const AxisId axis : axes)
      if (plan_.axes[axis.index()].size > 1) set |= bit(axis);
    return set;
  }

  // The axes that cut what a use holds of `part`; with a dimension: along that one.
  AxisSet cut_of(const Use& use, TensorPart part, int dim = -1) const {
    const Buffer& buffer = role_.buffers[use.buffer.index()];
    const std::int64_t to = use.length ? use.from.value + use.length->value : buffer.bytes.value;
    AxisSet axes = 0;
    for (const Shard& shard : buffer.holds)
      if (shard.at.value >= use.from.value && shard.at.value < to && shard.part == part && shard.flat_by.empty() &&
          (dim < 0 || shard.dim == dim))
        axes |= wide(shard.split_by);
    return axes;
  }
  AxisSet cut_of(const std::vector<Use>& uses, TensorPart part, int dim = -1) const {
    AxisSet axes = 0;
    for (const Use& use : uses) axes |= cut_of(use, part, dim);
    return axes;
  }

  void step(const Action& action, const Instruction& instruction) {
    Piece in;
    for (const RoleUses::Access& access : uses_.of(action.segment, instruction_))
      if (!access.write) for_each_piece(access, action, [&](Piece& piece) { in.add(piece); });
    if (const auto* compute = std::get_if<Compute>(&instruction.what)) {
      compute_step(action, instruction, *compute, in);
    } else if (const auto* collective = std::get_if<Collective>(&instruction.what)) {
      const bool keeps = collective->attributes.find("accumulate") != std::string::npos;
      meet(*collective, in);
      write_all(action, [&](std::size_t, Piece& piece) { keeps ? piece.add(in) : void(piece = in); });
    } else if (std::holds_alternative<Exchange>(instruction.what)) {
      if (in.missing != 0) tell("sends", in.missing);
      write_all(action, [](std::size_t, Piece& piece) { piece = {}; });
    } else {
      write_all(action, [&](std::size_t, Piece& piece) { piece = in; });
    }
    for (const Block& block : instruction.releases) {
      const std::size_t first = uses_.piece(block.buffer, value_of(block.slot, action));
      std::fill_n(pieces_.begin() + static_cast<std::ptrdiff_t>(first), uses_.cuts(block.buffer).size() - 1, Piece{});
    }
  }

  void compute_step(const Action& action, const Instruction& instruction, const Compute& compute, const Piece& in) {
    const bool cast = compute.op == Op::Cast;
    if (in.missing != 0 && !cast) tell("reads", in.missing);
    const bool forward = compute.phase == Phase::Forward || compute.phase == Phase::Recompute;
    const bool input_grad = compute.phase == Phase::InputGrad || compute.phase == Phase::Backward;
    Piece out{.missing = cast ? in.missing : 0, .columns = in.columns, .rows = in.rows};
    if (compute.op == Op::MatMul && (forward || input_grad)) {  // weights are [out, in]
      out.missing |= cut_of(instruction.reads, TensorPart::Value, forward ? 1 : 0);
      out.columns = forward ? cut_of(instruction.reads, TensorPart::Value, 0) : 0;
    }
    // An embedding with cut rows gives 0 for foreign tokens; beside its rows it keeps the tokens themselves.
    const AxisSet first = compute.op == Op::Embedding && forward ? cut_of(instruction.reads, TensorPart::Value, 0) : 0;
    const bool row_sums = compute.op == Op::CrossEntropy && forward && compute.attributes.starts_with("stage=exp");
    write_all(action, [&](std::size_t w, Piece& piece) {
      Piece made = out;
      if (w == 0) made.missing |= first;
      if (w == 1 && row_sums) made.missing |= in.columns;
      if (gradient(instruction.writes[w])) made = {.missing = in.rows & ~cut_of(instruction.writes[w], TensorPart::Gradient)};
      if (w > 0 && compute.phase == Phase::Backward) made.missing &= in.rows;  // the input gradient comes first
      keeps(compute, w) ? piece.add(made) : void(piece = made);
    });
  }
  bool gradient(const Use& use) const {
    return std::ranges::any_of(role_.buffers[use.buffer.index()].holds,
                               [](const Shard& shard) { return shard.part == TensorPart::Gradient; });
  }
  static bool keeps(const Compute& compute, std::size_t w) {
    const bool weights = w > 0 && compute.phase == Phase::Backward;
    return weights ? compute.attributes.find("accumulate_weights") != std::string::npos : compute.accumulate;
  }

  void meet(const Collective& collective, Piece& in) const {
    const AxisSet over = wide(plan_.groups[collective.group.index()].over);
    const bool scatters = collective.kind == CollectiveKind::ReduceScatter;
    const bool sums = scatters || collective.kind == CollectiveKind::AllReduce || collective.kind == CollectiveKind::Reduce;
    if (collective.kind == CollectiveKind::AllGather) in.rows &= ~over;
    if (!sums || collective.attributes.find("max") != std::string::npos) return;
    if (scatters) in.rows |= in.missing & over;
    in.missing &= ~over;
  }

  template <class F>
  void write_all(const Action& action, F&& f) {
    std::size_t w = 0;
    for (const RoleUses::Access& access : uses_.of(action.segment, instruction_)) {
      if (!access.write) continue;
      for_each_piece(access, action, [&](Piece& piece) { f(w, piece); });
      ++w;
    }
  }
  template <class F>
  void for_each_piece(const RoleUses::Access& access, const Action& action, F&& f) {
    const std::size_t first =
        uses_.piece(access.buffer, value_of(access.slot, action)) + static_cast<std::size_t>(access.first);
    for (std::size_t p = first; p < first + static_cast<std::size_t>(access.pieces); ++p) f(pieces_[p]);
  }

  void tell(const char* does, AxisSet axes) {
    std::string names;
    for (std::size_t axis = 0; axis < std::min<std::size_t>(plan_.axes.size(), 64); ++axis)
      if (axes >> axis & 1U) names += (names.empty() ? "" : ", ") + plan_.axes[axis].name;
    defects_.add("partial-sum", id_, action_, instruction_,
                 std::string(does) + " a part of a sum that was not reduced over " + names);
  }

  const Plan& plan_;
  const Role& role_;
  RoleId id_;
  const RoleUses& uses_;
  Defects& defects_;
  bool cut_ = false;  // some weight is cut at all
  std::vector<Piece> pieces_;
  std::int32_t action_ = 0, instruction_ = 0;
};

}  // namespace

void check_partial_sums(const Plan& plan, RoleId role, const RoleUses& uses, Defects& defects) {
  PartialSumCheck(plan, role, uses, defects).run();
}

}  // namespace foreshard
