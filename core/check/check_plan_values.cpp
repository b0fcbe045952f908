// Values: a backward reads the values that a forward of its operator had, and the gradients of that forward's results. Values are numbered: what
// an operator makes of equal values, in a recomputation too, has the same number, and copies keep it. Values whose gradients are the same
// memory (sums, what a collective made of a value) are one class. A gradient block holds the gradient of one class during a life; more of
// it is added, and an instruction that overwrites it loses what it held.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "core/check/check_plan_rules.h"
#include "core/check/value_classes.h"

namespace foreshard {
namespace {

class ValueCheck {
 public:
  ValueCheck(const Plan& plan, RoleId id, const RoleUses& uses, Defects& defects)
      : plan_(plan),
        role_(plan.roles[id.index()]),
        id_(id),
        uses_(uses),
        defects_(defects),
        pieces_(uses.pieces()),
        hashes_(plan.segments.size()) {}

  void run() {
    plain_ = follows_values(plan_, id_, uses_);
    for (std::size_t a = 0; a < role_.actions.size() && !defects_.full(); ++a) {
      const Action& action = role_.actions[a];
      const std::vector<Instruction>& instructions = plan_.segments[action.segment.index()].instructions;
      hash_operators(action.segment);
      for (std::size_t i = 0; i < instructions.size(); ++i) {
        action_ = static_cast<std::int32_t>(a), instruction_ = static_cast<std::int32_t>(i);
        step(action, instructions[i]);
      }
    }
  }

 private:
  struct Held {
    ValueId value = 0;        // the value, or the one whose gradient it is
    std::int64_t offset = 0;  // of the piece in it
    bool gradient = false, undefined = false;
  };
  struct Operand {
    ValueId value = 0;
    bool gradient = false, parameter = false;
    const RoleUses::Access* access = nullptr;
  };
  struct Forward {  // operands of a forward that was run
    std::vector<ValueId> reads = {}, writes = {};
  };

  void hash_operators(SegmentId segment) {
    std::vector<ValueId>& hashes = hashes_[segment.index()];
    const std::vector<Instruction>& instructions = plan_.segments[segment.index()].instructions;
    if (hashes.size() == instructions.size()) return;
    for (const Instruction& run : instructions) {
      const auto* compute = std::get_if<Compute>(&run.what);
      hashes.push_back(
          compute ? mixed(mixed(compute->op.index() + 1, settings_text(compute->op)), static_cast<ValueId>(run.layer.value + 2))
                  : 0);
    }
  }

  // A range of a block: of values that are computed in parts along the samples.
  bool partial(const RoleUses::Access& access) const {
    return static_cast<std::size_t>(access.pieces) + 1 != uses_.cuts(access.buffer).size();
  }
  std::size_t first_piece(const RoleUses::Access& access, const Action& action) const {
    return uses_.piece(access.buffer, value_of(access.slot, action)) + static_cast<std::size_t>(access.first);
  }

  Operand read(const RoleUses::Access& access, const Action& action) {
    const Buffer& buffer = role_.buffers[access.buffer.index()];
    Operand operand{.parameter = buffer.category == Category::Parameters, .access = &access};
    const std::vector<std::int64_t>& cuts = uses_.cuts(access.buffer);
    const std::size_t first = first_piece(access, action), cut = static_cast<std::size_t>(access.first);
    bool whole = true, known = true, undefined = access.pieces > 0;
    ValueId all = 0;
    for (std::size_t p = 0; p < static_cast<std::size_t>(access.pieces); ++p) {
      Held& held = pieces_[first + p];
      undefined = undefined && held.undefined;
      if (held.value == 0 && buffer.resident && !held.gradient) {  // from before the run
        held.value = mixed(static_cast<ValueId>(access.buffer.value) + 7, static_cast<ValueId>(value_of(access.slot, action)));
        held.offset = cuts[cut + p];
      }
      operand.gradient = operand.gradient || held.gradient;
      known = known && held.value != 0;
      const Held& begin = pieces_[first];
      whole = whole && held.value == begin.value && held.offset - begin.offset == cuts[cut + p] - cuts[cut];
      all = mixed(mixed(all, held.value), static_cast<ValueId>(held.offset));
    }
    if (undefined && computes_)
      tell("use-undefined", "reads " + block_name(role_, access.buffer, value_of(access.slot, action)) +
                                ", which nothing has written since it was acquired");
    if (access.pieces == 0 || !known) return operand;
    const Held& begin = pieces_[first];
    if (operand.gradient)
      operand.value = whole && !partial(access) ? begin.value : 0;
    else if (whole && begin.offset == 0 && (!partial(access) || operand.parameter || buffer.resident))
      operand.value = begin.value;
    else if (operand.parameter || buffer.resident)
      operand.value = all;
    // else a part of a value, or several: of the parts of a micro-batch
    return operand;
  }
  void write(const RoleUses::Access& access, const Action& action, ValueId value, bool gradient) {
    const std::vector<std::int64_t>& cuts = uses_.cuts(access.buffer);
    const std::size_t first = first_piece(access, action), cut = static_cast<std::size_t>(access.first);
    for (std::size_t p = 0; p < static_cast<std::size_t>(access.pieces); ++p)
      pieces_[first + p] = {.value = value, .offset = cuts[cut + p] - cuts[cut], .gradient = gradient};
  }

  void step(const Action& action, const Instruction& instruction) {
    for (const Block& block : instruction.acquires) mark(block, action, true);
    computes_ = std::holds_alternative<Compute>(instruction.what);
    reads_.clear(), writes_.clear();
    for (const RoleUses::Access& access : uses_.of(action.segment, instruction_))
      if (access.write)
        writes_.push_back(&access);
      else
        reads_.push_back(read(access, action));
    if (const auto* compute = std::get_if<Compute>(&instruction.what))
      calculate(action, *compute);
    else if (const auto* collective = std::get_if<Collective>(&instruction.what))
      meet(action, *collective);
    else if (const auto* exchange = std::get_if<Exchange>(&instruction.what))
      receive(action, *exchange);
    else if (const auto* copy = std::get_if<Copy>(&instruction.what); copy && !copy->slice.valid())
      move(action);
    else
      for (const RoleUses::Access* access : writes_)
        write(*access, action, copy ? slice_of_reads(*copy) : ++fresh_, any_gradient());
    for (const Block& block : instruction.releases) mark(block, action, false);
  }
  void mark(const Block& block, const Action& action, bool acquired) {
    const bool written = role_.buffers[block.buffer.index()].category != Category::Framework;
    const std::size_t first = uses_.piece(block.buffer, value_of(block.slot, action));
    std::fill_n(pieces_.begin() + static_cast<std::ptrdiff_t>(first), uses_.cuts(block.buffer).size() - 1,
                Held{.undefined = acquired && written});
  }
  bool any_gradient() const {
    return std::ranges::any_of(reads_, [](const Operand& operand) { return operand.gradient; });
  }

  // A rank's own part of a gradient is not followed.
  ValueId slice_of_reads(const Copy& copy) const {
    return any_gradient() ? 0 : made_of_reads(mixed(31, static_cast<ValueId>(copy.slice.value)));
  }
  ValueId made_of_reads(ValueId seed) const {
    for (const Operand& operand : reads_) seed = mixed(seed, operand.value);
    return seed;
  }
  static std::optional<std::int32_t> microbatch_of(const Compute& compute, const Action& action) {
    if (!compute.microbatch) return {};
    return action.args[compute.microbatch->index()];
  }

  void calculate(const Action& action, const Compute& compute) {
    const ValueId hash = hashes_[action.segment.index()][static_cast<std::size_t>(instruction_)];
    const bool backward =
        compute.phase == Phase::InputGrad || compute.phase == Phase::WeightGrad || compute.phase == Phase::Backward;
    if (backward && !is<ops::Encode, ops::Decode, ops::Cast, ops::Zero>(compute.op))
      return differentiate(action, compute, hash);
    if (compute.phase == Phase::Update) {
      for (const RoleUses::Access* access : writes_) write(*access, action, ++fresh_, false);
      return;
    }
    ValueId seed = made_of_reads(hash);
    if (const auto microbatch = microbatch_of(compute, action)) seed = mixed(seed, static_cast<ValueId>(*microbatch) + 3);
    Forward forward;
    for (const Operand& operand : reads_) forward.reads.push_back(operand.value);
    const bool gradient = any_gradient();
    for (std::size_t w = 0; w < writes_.size(); ++w) {
      ValueId value = mixed(seed, w + 11);
      if (gradient && is<ops::Cast, ops::Add>(compute.op)) value = reads_[0].value;  // still the gradient of that
      if (gradient && is<ops::Encode, ops::Decode>(compute.op)) value = 0;
      if (!compute.accumulate || w > 0) write(*writes_[w], action, value, gradient);
      forward.writes.push_back(value);
    }
    if (gradient || writes_.empty()) return;
    const bool known = std::ranges::find(forward.reads, ValueId{0}) == forward.reads.end();
    if (!known) unsure_.insert(hash);
    join(compute.op, forward);
    for (const std::vector<ValueId>* operands : {&forward.reads, &forward.writes})
      for (const ValueId value : *operands) {
        std::vector<std::int32_t>& list = by_operand_[mixed(hash, value)];
        if (list.empty() || list.back() != static_cast<std::int32_t>(forwards_.size()))
          list.push_back(static_cast<std::int32_t>(forwards_.size()));
      }
    for (const ValueId value : forward.writes) results_[hash].insert(classes_.of(value));
    forwards_.push_back(std::move(forward));
    const auto* loss = std::get_if<ops::CrossEntropy>(&compute.op);
    if (loss && loss->piece == ops::CrossEntropy::Piece::Max) maxima_.insert(forwards_.back().writes.front());
  }
  // The gradient of the result is, without a kernel, that of some operands.
  void join(const Operation& op, const Forward& forward) {
    const auto joined = [&](std::size_t read, std::size_t written) {
      if (read < reads_.size() && written < forward.writes.size() && !reads_[read].parameter)
        classes_.join(reads_[read].value, forward.writes[written]);
    };
    if (is<ops::Add, ops::Cast>(op))
      for (std::size_t r = 0; r < reads_.size(); ++r) joined(r, 0);
    if (is<ops::PositionEmbedding, ops::TakeRows, ops::PutRows, ops::Encode, ops::Decode>(op)) joined(0, 0);
    if (is<ops::Dropout>(op)) joined(1, 0);
    if (is<ops::MergeAttention>(op)) joined(0, 0), joined(1, 1), joined(2, 0), joined(3, 1);
  }

  // Whether the gradients that are read are those of the results of this forward.
  bool of_results(const Forward& forward) {
    return std::ranges::all_of(reads_, [&](const Operand& operand) {
      return !operand.gradient || operand.value == 0 || std::ranges::any_of(forward.writes, [&](ValueId value) {
        return classes_.of(value) == classes_.of(operand.value);
      });
    });
  }

  // What the backward of a linear layer reads of its input is not in the law of what it needs: it may be there.
  static ops::Saved ops_saved(const Compute& compute) {
    ops::Saved law = saved(compute.op);
    if (compute.phase == Phase::InputGrad && is<ops::MatMul, ops::Conv2d>(compute.op)) law.inputs = ops::kAll;
    return law;
  }
  // The gradient of a bias reads no value.
  void check_results(ValueId hash) {
    const auto results = results_.find(hash);
    if (!plain_ || results == results_.end()) return;
    for (const Operand& operand : reads_)
      if (operand.gradient && operand.value != 0 && !results->second.contains(classes_.of(operand.value)))
        return tell("operator-differs", "reads a gradient that is not of a result of such an operator in its layer");
  }

  // The forward that had all the values that the backward reads; none if it reads no value.
  const Forward* forward_of(const Compute& compute, ValueId hash) {
    const std::vector<std::int32_t>* candidates = nullptr;
    std::vector<ValueId> saved;
    for (const Operand& operand : reads_) {
      const bool scale = compute.dynamic_scale && &operand == &reads_.back();
      if (operand.gradient || operand.value == 0 || scale) continue;
      if (operand.parameter) continue;  // may be gathered again, copied on the device, or updated since
      saved.push_back(operand.value);
      const auto found = by_operand_.find(mixed(hash, operand.value));
      if (found != by_operand_.end() && (!candidates || found->second.size() < candidates->size())) candidates = &found->second;
    }
    if (saved.empty()) {
      if (is<ops::Add>(compute.op) && compute.phase == Phase::WeightGrad) check_results(hash);
      return nullptr;
    }
    // Attention reads what its parts were merged to, a loss and a router what their results were summed to over the ranks.
    const bool merged = is<ops::Attention, ops::CrossEntropy, ops::Route>(compute.op);
    const ops::Saved law = ops_saved(compute);
    const auto among = [&](const std::vector<ValueId>& operands, unsigned bits, ValueId value) {
      for (std::size_t i = 0; i < operands.size(); ++i)
        if ((i >= 32 || (bits >> i & 1U) != 0) &&
            (operands[i] == value || (merged && classes_.of(operands[i]) == classes_.of(value))))
          return true;
      return false;
    };
    const auto has = [&](const Forward& forward, ValueId value) {
      return among(forward.reads, law.inputs, value) || among(forward.writes, law.outputs, value);
    };
    const Forward* almost = nullptr;  // its results are others
    if (candidates)
      for (const std::int32_t index : *candidates) {
        const Forward& forward = forwards_[static_cast<std::size_t>(index)];
        if (!std::ranges::all_of(saved, [&](ValueId value) { return has(forward, value); })) continue;
        if (of_results(forward)) return &forward;
        almost = &forward;
      }
    if (almost) {
      if (plain_) tell("operator-differs", "reads a gradient that is not of the results of its forward");
      return almost;
    }
    if (plain_ && !unsure_.contains(hash) && !is<ops::Add>(compute.op))
      tell("operator-differs", "reads values that no forward of " + word(compute.op) + " in its layer had");
    return nullptr;
  }

  void differentiate(const Action& action, const Compute& compute, ValueId hash) {
    // A plan by hand that states no shapes says nothing of operands either.
    const Forward* forward = compute.shapes.empty() ? nullptr : forward_of(compute, hash);
    const bool weights = compute.phase == Phase::WeightGrad;
    for (std::size_t w = 0; w < writes_.size(); ++w) {
      const RoleUses::Access& access = *writes_[w];
      const Buffer& buffer = role_.buffers[access.buffer.index()];
      const bool of_weight = weights || !buffer.holds.empty() || buffer.category == Category::Gradients ||
                             w >= static_cast<std::size_t>(gradients(compute.op));
      if (of_weight) {
        write(access, action, 0, true);
        continue;
      }
      const std::size_t input = is<ops::Combine>(compute.op) && w == 1 ? 2 : w;
      const bool known = forward && input < forward->reads.size() && !partial(access);
      const ValueId of = known ? forward->reads[input] : 0;
      add_gradient(action, access, of, compute.accumulate);
    }
  }

  void add_gradient(const Action& action, const RoleUses::Access& access, ValueId of, bool adds) {
    const std::size_t first = first_piece(access, action);
    for (std::size_t p = first; p < first + static_cast<std::size_t>(access.pieces); ++p) {
      Held& held = pieces_[p];
      const auto name = [&] { return block_name(role_, access.buffer, value_of(access.slot, action)); };
      if (adds && held.undefined) {
        tell("use-undefined", "adds to " + name() + ", which nothing has written since it was acquired");
        break;
      }
      if (plain_ && adds && held.gradient && held.value != 0 && of != 0 && classes_.of(held.value) != classes_.of(of)) {
        tell("operator-differs", "adds to the gradient of another value in " + name());
        break;
      }
      const bool same = held.value == 0 || of == 0 || classes_.of(held.value) == classes_.of(of);
      if (!adds && held.gradient && same && !held.undefined && !role_.buffers[access.buffer.index()].resident) {
        tell("gradient-lost", "overwrites the gradient of a value in " + name() + ", to which it should add");
        break;
      }
      if (adds && of == 0) of = held.value;
    }
    write(access, action, of, true);
  }

  // Values are of the samples of a rank: ranks of data axes have others, and exchange tokens for experts only.
  void check_axes(const Collective& collective) {
    for (const Operand& operand : reads_) {
      const Buffer& buffer = role_.buffers[operand.access->buffer.index()];
      const bool of_samples = buffer.category == Category::Activations || buffer.category == Category::Transient;
      if (!of_samples || !buffer.holds.empty()) continue;
      for (const AxisId id : plan_.groups[collective.group.index()].over) {
        const Axis& axis = plan_.axes[id.index()];
        const bool data = axis.dense == DenseKind::Data || axis.dense == DenseKind::OuterData;
        if (data && axis.size > 1 && axis.expert == ExpertKind::ExpertData)
          return tell("collective-axes", "combines values over axis \"" + axis.name + "\", whose ranks see other samples");
      }
    }
  }
  void meet(const Action& action, const Collective& collective) {
    check_axes(collective);
    const bool gradient = any_gradient();
    ValueId value =
        made_of_reads(mixed(static_cast<ValueId>(collective.kind) + 17, static_cast<ValueId>(collective.group.value)));
    if (gradient) value = reads_.empty() ? 0 : reads_[0].value;
    const bool of_maxima = !reads_.empty() && maxima_.contains(reads_[0].value);
    const bool known = !reads_.empty() && reads_[0].value != 0;
    if (known && !gradient && of_maxima != (collective.combine == Combine::Max))
      tell("operator-differs",
           of_maxima ? "combines the maxima of a loss, but not to their maximum" : "takes the maximum of what is no maximum");
    for (const RoleUses::Access* access : writes_) {
      if (!gradient && !reads_.empty() && !reads_[0].parameter) classes_.join(reads_[0].value, value);
      write(*access, action, value, gradient);
    }
  }
  // What a ring sends on decides what comes; of other receives the work of the action does.
  void receive(const Action& action, const Exchange& exchange) {
    ValueId value = made_of_reads(mixed(23, exchange.tag));
    bool forward = false, backward = false;
    for (const Does& does : action.does) {
      forward = forward || does.work == Work::F, backward = backward || does.work != Work::F;
      value = mixed(mixed(value, static_cast<ValueId>(does.stage)), static_cast<ValueId>(does.microbatch + 2));
    }
    const bool gradient = reads_.empty() ? backward && !forward : any_gradient();
    const bool known = reads_.empty() ? forward != backward : !gradient;
    if (action.does.size() == 1) follow(action.does[0]);
    for (const RoleUses::Access* access : writes_) {
      if (known && !gradient && !reads_.empty()) classes_.join(reads_[0].value, value);
      write(*access, action, known && !gradient ? value : gradient ? sent_of(action) : 0, gradient || !known);
    }
    if (action.does.size() == 1 && !writes_.empty() && reads_.empty() && !gradient)
      add_once(received_[{action.does[0].stage, action.does[0].microbatch}], value);
  }
  // What a stage sent forward comes back as its gradient, and the gradient of what it received goes back.
  void follow(const Does& does) {
    if (reads_.size() != 1 || !writes_.empty()) return;
    const std::pair<std::int32_t, std::int32_t> cell{does.stage, does.microbatch};
    if (does.work == Work::F) return add_once(sent_[cell], reads_[0].value);
  }
  static void add_once(ValueId& known, ValueId value) { known = known == 0 ? value : kSeveral; }
  ValueId sent_of(const Action& action) const {
    if (action.does.size() != 1) return 0;
    const auto sent = sent_.find({action.does[0].stage, action.does[0].microbatch});
    return sent == sent_.end() || sent->second == kSeveral ? 0 : sent->second;
  }
  void move(const Action& action) {
    if (reads_.empty() || writes_.empty()) return;
    const RoleUses::Access &from = *reads_[0].access, &to = *writes_[0];
    const std::vector<std::int64_t>&from_cuts = uses_.cuts(from.buffer), &to_cuts = uses_.cuts(to.buffer);
    const std::size_t source = first_piece(from, action), target = first_piece(to, action);
    const auto from_cut = static_cast<std::size_t>(from.first), to_cut = static_cast<std::size_t>(to.first);
    std::vector<Held> moved;
    std::size_t s = 0;
    for (std::size_t p = 0; p < static_cast<std::size_t>(to.pieces); ++p) {
      const std::int64_t place = to_cuts[to_cut + p] - to_cuts[to_cut];
      while (s + 1 < static_cast<std::size_t>(from.pieces) && from_cuts[from_cut + s + 1] - from_cuts[from_cut] <= place) ++s;
      Held held = from.pieces > 0 ? pieces_[source + s] : Held{};
      held.offset += place - (from_cuts[from_cut + s] - from_cuts[from_cut]);
      moved.push_back(held);
    }
    std::ranges::copy(moved, pieces_.begin() + static_cast<std::ptrdiff_t>(target));
  }

  void tell(const char* rule, std::string what) { defects_.add(rule, id_, action_, instruction_, std::move(what)); }

  const Plan& plan_;
  const Role& role_;
  RoleId id_;
  const RoleUses& uses_;
  Defects& defects_;
  std::vector<Held> pieces_;
  std::vector<std::vector<ValueId>> hashes_;  // [segment][instruction]: of operator, settings and layer
  ValueClasses classes_;
  std::vector<Forward> forwards_;
  std::unordered_map<ValueId, std::vector<std::int32_t>> by_operand_;  // operator and operand: forwards that have it
  std::unordered_map<ValueId, std::set<ValueId>> results_;             // operator: classes of what its forwards made
  std::unordered_set<ValueId> unsure_;                                 // operators of which some forward read a part of a value
  std::set<ValueId> maxima_;                                           // of rows, of losses in pieces
  static constexpr ValueId kSeveral = ~ValueId{0};
  std::map<std::pair<std::int32_t, std::int32_t>, ValueId> sent_, received_;  // [stage, micro-batch]: by a forward
  std::vector<Operand> reads_;
  std::vector<const RoleUses::Access*> writes_;
  ValueId fresh_ = ValueId{1} << 40U;
  std::int32_t action_ = 0, instruction_ = 0;
  bool computes_ = false, plain_ = true;  // follows_values
};

}  // namespace

void check_values(const Plan& plan, RoleId role, const RoleUses& uses, Defects& defects) {
  ValueCheck(plan, role, uses, defects).run();
}

}  // namespace foreshard
