// Which tensors instructions use. An operator of a layer reads and writes whole parts of tensors; the gradients that its backward writes are of the
// tensors whose values its forward reads, within a layer; and gradient, states and value of an update are of the same tensors.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/check/check_plan_rules.h"

namespace foreshard {
namespace {

class TensorCheck {
 public:
  TensorCheck(const Plan& plan, RoleId id, Defects& defects)
      : plan_(plan), role_(plan.roles[id.index()]), id_(id), defects_(defects) {}

  void run() {
    std::vector<char> seen(plan_.segments.size(), 0);
    for (std::size_t a = 0; a < role_.actions.size() && !defects_.full(); ++a) {
      const std::size_t segment = role_.actions[a].segment.index();
      if (std::exchange(seen[segment], 1)) continue;
      const std::vector<Instruction>& instructions = plan_.segments[segment].instructions;
      for (std::size_t i = 0; i < instructions.size(); ++i) {
        action_ = static_cast<std::int32_t>(a), instruction_ = static_cast<std::int32_t>(i);
        check(instructions[i]);
      }
    }
    for (const auto& [key, layer] : layers_) compare(layer);
  }

 private:
  struct Layer {  // the operators of one kind in one layer: tensors and the first place that uses them
    std::map<std::int32_t, std::pair<std::int32_t, std::int32_t>> values = {}, again = {}, gradients = {};
    bool unknown = false;  // some weight has no name, or one of several
  };

  void check(const Instruction& instruction) {
    const auto* compute = std::get_if<Compute>(&instruction.what);
    const auto* host = std::get_if<HostCompute>(&instruction.what);
    if (compute ? is_step(compute->op) : host && is_step(host->op)) {
      check_step(instruction.reads, instruction.writes);
      if (compute && compute->slice.valid()) check_slice(instruction, plan_.groups[compute->slice.index()].over);
      return;
    }
    if (std::holds_alternative<Collective>(instruction.what) || std::holds_alternative<Copy>(instruction.what))
      return check_moved(instruction);
    if (!compute || compute->phase == Phase::Update || compute->phase == Phase::Other) return;
    if (is<ops::Cast, ops::Encode, ops::Decode>(compute->op)) return;
    Layer& layer = layers_[{instruction.layer.value, static_cast<std::int32_t>(compute->op.index())}];
    for (const Use& use : instruction.reads) {
      const Buffer& buffer = role_.buffers[use.buffer.index()];
      layer.unknown = layer.unknown || (buffer.category == Category::Parameters && buffer.holds.empty());
      note(use, TensorPart::Value, compute->phase == Phase::Forward ? layer.values : layer.again, layer);
    }
    for (const Use& use : instruction.writes) note(use, TensorPart::Gradient, layer.gradients, layer);
  }

  // Finds the tensor of which the range is all that the rank has. Several uses of the buffer may lie on the same bytes.
  void note(const Use& use, TensorPart part, std::map<std::int32_t, std::pair<std::int32_t, std::int32_t>>& tensors,
            Layer& layer) {
    const Buffer& buffer = role_.buffers[use.buffer.index()];
    if (buffer.holds.empty()) return;
    const std::int64_t length = use.length ? use.length->value : buffer.bytes.value - use.from.value;
    std::vector<std::int32_t> found;
    for (const Shard& shard : buffer.holds) {
      if (!shard.flat_by.empty()) {
        layer.unknown = true;
        return;
      }
      if (shard.part == part && shard.at == use.from && shard_bytes(plan_, role_, buffer, shard) == length)
        found.push_back(shard.tensor.value);
    }
    if (found.empty())
      return tell("shard-size", "uses bytes " + std::to_string(use.from.value) + " to " +
                                    std::to_string(use.from.value + length) + " of \"" + buffer.name + "\", where no " +
                                    (part == TensorPart::Value ? "value" : "gradient") + " of a tensor lies");
    if (found.size() == 1)
      tensors.try_emplace(found.front(), action_, instruction_);
    else
      layer.unknown = true;
  }

  void compare(const Layer& layer) {
    const auto tell_other = [&](const std::pair<const std::int32_t, std::pair<std::int32_t, std::int32_t>>& use,
                                const std::string& what) {
      std::tie(action_, instruction_) = use.second;
      tell("operator-differs", what + " \"" + plan_.tensors[static_cast<std::size_t>(use.first)].name + "\"" +
                                   (what.starts_with("reads") ? ", whose gradient no backward of the layer writes"
                                                              : ", which no forward of the operator reads in its layer"));
    };
    if (layer.values.empty() || layer.unknown) return;
    for (const auto& use : layer.again)
      if (!layer.values.contains(use.first)) return tell_other(use, "computes with");
    for (const auto& use : layer.gradients)
      if (!layer.values.contains(use.first)) return tell_other(use, "writes the gradient of");
    if (layer.gradients.empty()) return;
    for (const auto& use : layer.values)
      if (!layer.gradients.contains(use.first) && !plan_.tensors[static_cast<std::size_t>(use.first)].frozen)
        return tell_other(use, "reads");
  }

  // Operands of a step are, in this order: gradient, master copy, first and second moment, value.
  static int place_of(TensorPart part) {
    switch (part) {
      case TensorPart::Gradient: return 0;
      case TensorPart::Master: return 1;
      case TensorPart::Momentum: return 2;
      case TensorPart::Variance: return 3;
      case TensorPart::Value: return 4;
    }
    return 5;
  }
  void check_step(const std::vector<Use>& reads, const std::vector<Use>& writes) {
    std::vector<std::int32_t> tensors;
    bool known = false;
    for (const std::vector<Use>* uses : {&reads, &writes}) {
      int last = -1;
      for (const Use& use : *uses) {
        const Buffer& buffer = role_.buffers[use.buffer.index()];
        if (buffer.holds.empty() || !buffer.resident) continue;
        const int place = place_of(buffer.holds.front().part);
        if (place <= last || (uses == &writes && place == 0))
          return tell("operator-differs", "takes \"" + buffer.name + "\" in another place than that of its kind");
        last = place;
        const std::vector<std::int32_t> here = tensors_of(use, buffer);
        if (known && here != tensors)
          return tell("operator-differs", "updates \"" + buffer.name + "\" with what is of other tensors");
        tensors = here, known = true;
      }
    }
  }
  // The slice of a step is the part that states with a flat cut have.
  void check_slice(const Instruction& instruction, const std::vector<AxisId>& over) {
    const auto wide = [&](std::vector<AxisId> axes) {
      std::erase_if(axes, [&](AxisId axis) { return plan_.axes[axis.index()].size == 1; });
      std::ranges::sort(axes);
      return axes;
    };
    for (const std::vector<Use>* uses : {&instruction.reads, &instruction.writes})
      for (const Use& use : *uses)
        for (const Shard& shard : role_.buffers[use.buffer.index()].holds)
          if (!shard.flat_by.empty() && wide(shard.flat_by) != wide(over))
            return tell("operator-differs", "works on the part of another group than \"" +
                                                role_.buffers[use.buffer.index()].name + "\" is cut over");
  }
  // A copy and a collective between tensors keep what they are.
  void check_moved(const Instruction& instruction) {
    if (instruction.reads.empty() || instruction.writes.empty()) return;
    const Buffer &from = role_.buffers[instruction.reads[0].buffer.index()],
                 &to = role_.buffers[instruction.writes[0].buffer.index()];
    if (from.holds.empty() || to.holds.empty() || &from == &to) return;
    const bool other_part = from.holds.front().part != to.holds.front().part;
    const bool both_stay = from.resident && to.resident;
    if (other_part || (both_stay && tensors_of(instruction.reads[0], from) != tensors_of(instruction.writes[0], to)))
      tell("operator-differs", "moves \"" + from.name + "\" to \"" + to.name + "\", which is of other tensors");
  }
  std::vector<std::int32_t> tensors_of(const Use& use, const Buffer& buffer) const {
    std::vector<std::pair<std::int64_t, std::int32_t>> found;
    const std::int64_t to = use.length ? use.from.value + use.length->value : buffer.bytes.value;
    for (const Shard& shard : buffer.holds) {
      const bool inside = shard.at >= use.from && shard.at.value < to;
      if (inside || !shard.flat_by.empty()) found.push_back({shard.at.value, shard.tensor.value});
    }
    std::ranges::sort(found);
    std::vector<std::int32_t> tensors;
    for (const auto& [at, tensor] : found) tensors.push_back(tensor);
    return tensors;
  }

  void tell(const char* rule, std::string what) { defects_.add(rule, id_, action_, instruction_, std::move(what)); }

  const Plan& plan_;
  const Role& role_;
  RoleId id_;
  Defects& defects_;
  std::map<std::pair<std::int32_t, std::int32_t>, Layer> layers_;  // [layer, operator]
  std::int32_t action_ = 0, instruction_ = 0;
};

}  // namespace

void check_tensors(const Plan& plan, RoleId role, Defects& defects) { TensorCheck(plan, role, defects).run(); }

}  // namespace foreshard
