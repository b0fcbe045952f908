#include "strategy/lower/operator_parts.h"

#include <algorithm>
#include <string>

#include "strategy/lower/operator_emitter.h"

namespace foreshard {

namespace {

// Each row of its results follows from the same row of what it reads, wherever that row lies.
bool works_on_rows(const Operation& op) {
  if (const auto* product = std::get_if<ops::MatMul>(&op)) return !product->first_token;
  return is<ops::Norm>(op) || is<ops::Activation>(op) || is<ops::Add>(op);
}

}  // namespace

std::optional<OperatorParts::Found> OperatorParts::find(const Instruction& whole, const std::string& name) const {
  if (!whole.layer.valid()) return {};
  const auto layer = std::ranges::find(layers_, whole.layer, &ChunkLayer::id);
  if (layer == layers_.end()) return {};
  const std::vector<Operator>& operators = layer->graph->operators;
  const auto op = std::ranges::find(operators, name, &Operator::name);
  if (op == operators.end()) return {};
  return Found{&*layer, static_cast<std::size_t>(op - operators.begin())};
}

std::optional<OperatorParts::Found> OperatorParts::find_coded(const Instruction& whole) const {
  const std::size_t end = whole.name.find(", ");
  return end == std::string::npos ? std::nullopt : find(whole, whole.name.substr(0, end));
}

bool OperatorParts::sends_codes(const Instruction& whole) const {
  return std::holds_alternative<Collective>(whole.what) && find_coded(whole);
}

int OperatorParts::parts_of(const ChunkLayer& layer, const Operator& op) const {
  const int at = frame_.first_layer() + static_cast<int>(&layer - layers_.data());
  const auto index = static_cast<std::size_t>(&op - layer.graph->operators.data());
  return frame_.lowering.tables.communication.parts_of(at, operation_of(*layer.graph, index));
}

bool OperatorParts::of_samples(BufferId id) const {
  const Buffer& buffer = frame_.role.buffers[id.index()];
  const bool activation = buffer.category == Category::Activations || buffer.category == Category::Transient ||
                          buffer.category == Category::Communication;
  return activation && buffer.bytes > size_of(buffer.dtype);  // a number: the loss
}

Divides OperatorParts::divides(const Instruction& whole) const {
  const auto whole_values = [&](const std::vector<Use>& uses) {
    return std::ranges::all_of(uses, [&](const Use& use) { return !use.length && of_samples(use.buffer); });
  };
  const bool sums_values = whole.layer.valid() && whole.stream == kComputeStream && whole_values(whole.reads) &&
                           whole_values(whole.writes) && whole.reads.size() == 1 && whole.writes.size() == 1;
  if (const auto* copy = std::get_if<Copy>(&whole.what)) {
    const auto bytes = [&](const Use& use) { return frame_.role.buffers[use.buffer.index()].bytes; };
    const bool all = sums_values && copy->bytes == bytes(whole.reads[0]) && copy->bytes == bytes(whole.writes[0]);
    return all ? Divides::Rows : Divides::Never;
  }
  if (find_coded(whole)) return Divides::Groups;
  const auto found = find(whole);
  if (const auto* sum = std::get_if<Collective>(&whole.what))
    return !found ? Divides::Never : sum->kind == CollectiveKind::AllReduce ? Divides::Rows : Divides::Groups;
  const auto* what = std::get_if<Compute>(&whole.what);
  if (!what || what->phase == Phase::Update || what->phase == Phase::Other) return Divides::Never;
  if (found) return works_on_rows(what->op) ? Divides::Rows : Divides::Groups;
  return sums_values && is<ops::Add>(what->op) ? Divides::Rows : Divides::Never;  // a sum of two gradients
}

std::optional<int> OperatorParts::ends_operation(const Instruction& whole) const {
  const auto* what = std::get_if<Compute>(&whole.what);
  if (what && !is<ops::Decode>(what->op)) return {};
  const auto found = what && !std::get<ops::Decode>(what->op).adds ? find_coded(whole) : find(whole);
  if (!found || (!what && !std::holds_alternative<Collective>(whole.what))) return {};
  return parts_of(*found->layer, found->layer->graph->operators[found->op]);
}

void OperatorParts::cut_use(Use& use, int pieces, int index) const {
  if (use.length || !of_samples(use.buffer)) return;
  const Bytes bytes = frame_.role.buffers[use.buffer.index()].bytes;
  FS_ASSERT(bytes.value % pieces == 0);
  use.from = {bytes.value / pieces * index}, use.length = Bytes{bytes.value / pieces};
}

// The first part may add to a gradient of weights, the others always do.
void OperatorParts::cut_compute(Instruction& part, int pieces, int index) const {
  auto& what = std::get<Compute>(part.what);
  const auto found = find(part);
  if (!found) {
    FS_ASSERT(what.shapes.size() == 1 && what.shapes[0].dims[0] % pieces == 0);
    what.shapes[0].dims[0] /= pieces, what.flops = {what.flops.value / pieces}, what.traffic = {what.traffic.value / pieces};
    return;
  }
  const Lowering& lowering = frame_.lowering;
  const auto kind = static_cast<std::size_t>(found->layer->graph - lowering.graph.kinds.data());
  const Operator& whole_op = found->layer->graph->operators[found->op];
  const Operator& part_op = lowering.graph_of_parts.at(pieces).kinds[kind].operators[found->op];
  const OpWork &whole = work_of(whole_op, what.phase), &work = work_of(part_op, what.phase);
  const bool apart = what.phase == Phase::WeightGrad;
  bool& adds = apart ? what.accumulate : what.accumulate_weights;
  Bytes weights = {};
  if (apart || what.phase == Phase::Backward)
    for (const Use& use : part.writes)
      if (!of_samples(use.buffer)) weights += use.length.value_or(frame_.role.buffers[use.buffer.index()].bytes);
  const Bytes more = what.traffic - whole.traffic;  // by what is added to
  Bytes of_weights = adds ? std::min(more, weights) : Bytes{};
  const Bytes of_values = {(more - of_weights).value / pieces};
  if (index > 0 && weights > Bytes{}) adds = true, of_weights = weights;
  what.shapes = part_op.shapes, what.flops = work.flops, what.traffic = work.traffic + of_values + of_weights;
}

Instruction OperatorParts::piece(const Instruction& whole, int pieces, int index) const {
  Instruction part = whole;
  part.after.clear();
  if (pieces == 1) return part;
  if (auto* copy = std::get_if<Copy>(&part.what)) copy->bytes = {copy->bytes.value / pieces};
  if (auto* sum = std::get_if<Collective>(&part.what)) sum->bytes = {sum->bytes.value / pieces};
  if (std::holds_alternative<Compute>(part.what)) cut_compute(part, pieces, index);
  for (std::vector<Use>* uses : {&part.reads, &part.writes})
    for (Use& use : *uses) cut_use(use, pieces, index);
  part.name += " " + std::to_string(index + 1) + "/" + std::to_string(pieces);
  if (index > 0) part.acquires.clear(), part.waits.clear();
  if (index + 1 < pieces) part.releases.clear(), part.records.clear();
  return part;
}

}  // namespace foreshard
