#include "strategy/lower/operator_emitter.h"

#include <algorithm>

#include "strategy/program/coded_sum.h"

namespace foreshard {

Peer OperatorEmitter::next_stage() const {
  return {.role_shift = frame_.lowering.tables.schedule.rank_of(frame_.stage + 1) - frame_.rank};
}
Peer OperatorEmitter::previous_stage() const {
  return {.role_shift = frame_.lowering.tables.schedule.rank_of(frame_.stage - 1) - frame_.rank};
}
// Chunk of the receiving stage: pairs sends with receives and is the same text on every role.
std::string OperatorEmitter::tag(bool forward, int to_stage) const {
  return (forward ? "forward." : "backward.") + std::to_string(frame_.lowering.tables.schedule.chunk_of(to_stage));
}
GroupId OperatorEmitter::parts_of_transfer(const CommunicationRow& way, Bytes bytes) const {
  if (way.cut_by.empty()) return {};
  const std::int64_t elements = bytes.value / size_of(frame_.lowering.compute_type()).value;
  if (elements % frame_.lowering.ranks(way.cut_by) != 0) return {};
  return frame_.lowering.group(way.cut_by, frame_.lowering.communication(Purpose::Operator).stream);
}
Exchange OperatorEmitter::transfer(const CommunicationRow& way, const Block& block, std::optional<Peer> to,
                                   std::optional<Peer> from, const std::string& tag) const {
  const Bytes bytes = values_.bytes(block);
  const GroupId parts = parts_of_transfer(way, bytes);
  return {.to = to,
          .from = from,
          .tag = tag,
          .bytes = {parts.valid() ? bytes.value / frame_.lowering.ranks(way.cut_by) : bytes.value},
          .slice = parts};
}
void OperatorEmitter::gather_transfer(SegmentBuilder& out, const CommunicationRow& way, const Block& block,
                                      const std::string& name) const {
  const Bytes bytes = values_.bytes(block);
  const GroupId parts = parts_of_transfer(way, bytes);
  if (!parts.valid()) return;
  const CommunicationRow& gather = frame_.lowering.communication(Purpose::Operator);
  out.emit({.name = name,
            .what = Collective{.kind = CollectiveKind::AllGather,
                               .algorithm = gather.algorithm.value_or(Algorithm::Ring),
                               .group = parts,
                               .bytes = bytes,
                               .dtype = frame_.lowering.compute_type()},
            .stream = gather.stream,
            .reads = {whole(block)},
            .writes = {whole(block)}});
}
const CommunicationRow& OperatorEmitter::way(const Kinds& over) const {
  const bool experts = std::ranges::any_of(over, [](const AxisKind& kind) { return std::holds_alternative<ExpertKind>(kind); });
  return frame_.lowering.communication(experts ? Purpose::Experts : Purpose::Operator);
}
bool OperatorEmitter::is_between_operators(StreamId stream) const {
  return std::ranges::any_of(frame_.lowering.tables.communication.rows, [&](const CommunicationRow& row) {
    return row.stream == stream && (row.purpose == Purpose::Operator || row.purpose == Purpose::Experts);
  });
}

Instruction OperatorEmitter::communication(const ChunkLayer& layer, const Operator& op, CollectiveKind kind, const Block& from,
                                           const Block& to) const {
  const Communication& what = *op.communication;
  const CommunicationRow& way = this->way(what.over);
  Instruction instruction{.name = op.name,
                          .what = Collective{.kind = kind,
                                             .algorithm = what.algorithm.value_or(way.algorithm.value_or(Algorithm::Ring)),
                                             .group = frame_.lowering.group(what.over, way.stream),
                                             .bytes = what.bytes,
                                             .dtype = frame_.lowering.compute_type(),
                                             .combine = what.combine},
                          .stream = way.stream,
                          .layer = layer.id,
                          .reads = {whole(from)},
                          .writes = {whole(to)}};
  return instruction;
}

bool OperatorEmitter::operators_communicate() const {
  const auto with_others = [&](const Operator& op) {
    return op.communication && frame_.lowering.ranks(op.communication->over) > 1;
  };
  return std::ranges::any_of(frame_.lowering.graph.kinds,
                             [&](const LayerGraph& layer) { return std::ranges::any_of(layer.operators, with_others); });
}

// Collectives on a stream of their own reuse scratch places of the action before: they come after what it computed.
void OperatorEmitter::begin(SegmentBuilder& out) {
  begin_ = -1;
  if (frame_.lowering.communication(Purpose::Operator).stream == kComputeStream || !operators_communicate()) return;
  begin_ = out.emit({.name = "begin", .what = Mark{}, .stream = kComputeStream});
}

// ... and what the next action computes comes after the collectives that read what it writes: where nothing here follows the last one of
// a stream.
void OperatorEmitter::end(SegmentBuilder& out) const {
  if (begin_ < 0) return;
  std::vector<std::int32_t> last;  // of each stream, those that nothing follows
  for (std::int32_t i = 0; i < out.size(); ++i) {
    const Instruction& run = out.at(i);
    if (is_between_operators(run.stream)) {
      std::erase_if(last, [&](std::int32_t before) { return out.at(before).stream == run.stream; });
      last.push_back(i);
    } else if (run.stream == kComputeStream)
      std::erase_if(last, [&](std::int32_t before) { return std::ranges::find(run.after, before) != run.after.end(); });
  }
  if (!last.empty()) out.emit({.name = "end", .what = Mark{}, .stream = kComputeStream, .after = last});
}

// `run` works on one of `times` equal ranges of an array; the result works on all of them (cut_segment.h cuts it again).
static Instruction of_all_groups(Instruction run, int times) {
  if (auto* what = std::get_if<Compute>(&run.what))
    what->shapes[0].dims[0] *= times, what->flops = {what->flops.value * times}, what->traffic = what->traffic * times;
  if (auto* sum = std::get_if<Collective>(&run.what)) sum->bytes = sum->bytes * times;
  return run;
}

// The embedding alone scatters what it sends on.
void OperatorEmitter::wait_for_output(Instruction& run, const Block& to) const {
  if (values_.output.buffer.valid() && to.buffer == values_.output.buffer)
    run.waits.push_back({values_.output_sent, values_.output.slot});
}

CodedSum OperatorEmitter::coded(const Operator& op, const Coding& coding) const {
  const DType type = frame_.lowering.compute_type();
  return {frame_.lowering,
          coding,
          op.communication->over,
          way(op.communication->over),
          type,
          op.communication->bytes.value / size_of(type).value / frame_.lowering.tables.communication.sample_groups()};
}

Block OperatorEmitter::scratch(const char* name, DType dtype, Bytes of_group) {
  const int groups = frame_.lowering.tables.communication.sample_groups();
  const std::size_t number = codes_.size() + of_parts_.size();
  return {frame_.add_buffer(name + ("." + std::to_string(number)), Category::Communication, dtype, of_group * groups, 1), {0}};
}

// A sum in place whose numbers are sent as codes. Where operators are cut into parts, each group of samples is encoded by itself, as a
// micro-batch of as many samples would be: the blocks hold the codes of the groups one after another.
int OperatorEmitter::coded_sum(SegmentBuilder& out, const ChunkLayer& layer, const Operator& op, const Coding& coding,
                               const Block& sum) {
  const int groups = frame_.lowering.tables.communication.sample_groups();
  const CodedSum coded = this->coded(op, coding);
  const auto [known, fresh] = codes_.try_emplace(op.communication->bytes.value);
  Codes& at = known->second;
  if (fresh)
    at = {scratch("activation codes", DType::U8, coded.codes()), scratch("activation codes of part", DType::U8, coded.codes()),
          scratch("activation sum of part", coded.state_type(), size_of(coded.state_type()) * coded.part_elements()),
          scratch("activation codes of sum", DType::U8, coded.part()),
          scratch("activation codes of all", DType::U8, coded.gathered())};
  const auto emit = [&](Instruction run) {
    run.name = op.name + ", " + run.name, run.layer = layer.id;
    return out.emit(of_all_groups(std::move(run), groups));
  };
  emit(coded.encode(whole(sum), {}, {}, at.codes));
  emit(coded.exchange(at.codes, at.received));
  out.release(at.codes);
  emit(coded.add_parts(at.received, at.part));
  out.release(at.received);
  emit(coded.encode_part(at.part, {}, at.part_codes));
  out.release(at.part);
  emit(coded.gather(at.part_codes, at.gathered));
  out.release(at.part_codes);
  const int decoded = emit(coded.decode(at.gathered, whole(sum)));
  out.release(at.gathered);
  return decoded;
}

// With sequence parallelism each rank has a part of the rows. A gather sends the codes of the rank's part, a reduce-scatter the codes of
// each part to its rank, which adds them. Groups of samples as in coded_sum.
int OperatorEmitter::coded_parts(SegmentBuilder& out, const ChunkLayer& layer, const Operator& op, CollectiveKind kind,
                                 const Coding& coding, const Block& from, const Block& to) {
  const int groups = frame_.lowering.tables.communication.sample_groups();
  const DType type = frame_.lowering.compute_type();
  const CodedSum coded = this->coded(op, coding);
  const auto [known, fresh] = of_parts_.try_emplace(op.communication->bytes.value);
  Codes& at = known->second;
  if (fresh)
    at = {.codes = scratch("codes of rows", DType::U8, coded.codes()),
          .received = scratch("received codes of rows", DType::U8, coded.codes()),
          .part_codes = scratch("codes of own rows", DType::U8, coded.part())};
  const auto emit = [&](Instruction run) {
    run.name = op.name + ", " + run.name, run.layer = layer.id;
    return out.emit(of_all_groups(std::move(run), groups));
  };
  const bool gathers = kind == CollectiveKind::AllGather;
  if (gathers) {
    emit(coded.encode_part(from, type, at.part_codes));
    emit(coded.gather(at.part_codes, at.received));
    out.release(at.part_codes);
  } else {
    emit(coded.encode(whole(from), {}, {}, at.codes));
    emit(coded.exchange(at.codes, at.received));
    out.release(at.codes);
  }
  Instruction arrives = gathers ? coded.decode(at.received, whole(to)) : coded.add_parts(at.received, whole(to), type, false);
  arrives.acquires.push_back(to);
  wait_for_output(arrives, to);
  const int last = emit(std::move(arrives));
  out.release(at.received);
  return last;
}

// Rows that an all-to-all sends as codes: each member's part is encoded by itself.
int OperatorEmitter::coded_rows(SegmentBuilder& out, const ChunkLayer& layer, const Operator& op, const Coding& coding,
                                const Block& from, const Block& to) {
  const DType type = frame_.lowering.compute_type();
  const Bytes bytes = op.communication->bytes;
  const CodedSum coded(frame_.lowering, coding, op.communication->over, way(op.communication->over), type,
                       bytes.value / size_of(type).value);
  const auto [known, fresh] = codes_.try_emplace(-coded.codes().value);
  Codes& at = known->second;
  if (fresh)
    for (const auto& [block, name] : {std::pair{&at.codes, "codes of rows."}, {&at.received, "received codes of rows."}})
      *block = {frame_.add_buffer(name + std::to_string(codes_.size()), Category::Communication, DType::U8, coded.codes(), 1),
                {0}};
  const auto emit = [&](Instruction run) {
    run.name = op.name + ", " + run.name, run.layer = layer.id;
    return out.emit(std::move(run));
  };
  emit(coded.encode(whole(from), {}, {}, at.codes));
  emit(coded.exchange(at.codes, at.received));
  out.release(at.codes);
  Instruction decode = coded.decode(at.received, whole(to));
  decode.acquires.push_back(to);
  const int decoded = emit(std::move(decode));
  out.release(at.received);
  return decoded;
}

int OperatorEmitter::take_own_part(SegmentBuilder& out, const ChunkLayer& layer, const Operator& gather, const Block& from,
                                   const Block& to) {
  const Communication& what = *gather.communication;
  const Bytes bytes = {what.bytes.value / frame_.lowering.ranks(what.over)};
  const auto use = [](const Block& block, Bytes length) {
    return Use{.buffer = block.buffer, .slot = block.slot, .length = length};
  };
  return out.emit({.name = gather.name,
                   .what = Copy{.bytes = bytes, .slice = frame_.lowering.group(what.over, way(what.over).stream)},
                   .stream = kComputeStream,
                   .layer = layer.id,
                   .reads = {use(from, what.bytes)},
                   .writes = {use(to, bytes)},
                   .acquires = {to}});
}

// A collective, or an exchange with the neighbours of a ring.
int OperatorEmitter::communicate(SegmentBuilder& out, const ChunkLayer& layer, const Operator& op, CollectiveKind kind,
                                 const Block& from, const Block& to, bool acquire, bool backward) {
  const std::optional<Coding>& coding = way(op.communication->over).coding;
  if (coding && op.communication->activations && kind == CollectiveKind::AllReduce && from == to)
    return coded_sum(out, layer, op, *coding, to);
  if (coding && op.communication->activations && kind != CollectiveKind::AllReduce)
    return coded_parts(out, layer, op, kind, *coding, from, to);
  const std::optional<Coding>& dispatch = way(op.communication->over).dispatch;
  if (dispatch && (backward ? op.communication->from_experts : op.communication->to_experts))
    return coded_rows(out, layer, op, *dispatch, from, to);
  if (!op.communication->ring_exchange) {
    Instruction instruction = communication(layer, op, kind, from, to);
    if (acquire) instruction.acquires.push_back(to);
    if (acquire && begin_ >= 0) instruction.after.push_back(begin_);
    if (acquire) wait_for_output(instruction, to);
    return out.emit(std::move(instruction));
  }
  const std::vector<AxisId> axes = frame_.lowering.over(op.communication->over);
  const bool back = kind != *op.communication->forward;
  Instruction instruction{.name = op.name,
                          .what = Exchange{.to = Peer{.axes = axes, .shift = back ? -1 : 1},
                                           .from = Peer{.axes = axes, .shift = back ? 1 : -1},
                                           .tag = op.name + (back ? ".grad" : ""),
                                           .bytes = op.communication->bytes},
                          .stream = way(op.communication->over).stream,
                          .layer = layer.id,
                          .reads = {whole(from)},
                          .writes = {whole(to)}};
  if (acquire) instruction.acquires.push_back(to);
  if (acquire && begin_ >= 0) instruction.after.push_back(begin_);
  return out.emit(std::move(instruction));
}

const OpWork& work_of(const Operator& op, Phase phase) {
  if (ops::is_input_grad(phase))
    return op.input_grad;  // of Backward too: one kernel makes both gradients from the same operands
  if (phase == Phase::WeightGrad) return op.weight_grad;
  return op.forward;
}

Instruction OperatorEmitter::compute(const ChunkLayer& layer, const Operator& op, Phase phase) const {
  const OpWork& work = work_of(op, phase);
  Compute what{.op = op.op, .phase = phase, .shapes = op.shapes, .flops = work.flops, .traffic = work.traffic};
  if (depends_on_microbatch(op.op)) what.microbatch = ChunkArgs::microbatch;
  return {.name = op.name, .what = std::move(what), .stream = kComputeStream, .layer = layer.id};
}

void OperatorEmitter::emit(SegmentBuilder& out, const Operator& op, Instruction run) const {
  const Block factors = values_.factors(op);
  if (factors.buffer.valid()) run.writes.push_back(whole(factors)), run.acquires.push_back(factors);
  out.emit(std::move(run));
  if (factors.buffer.valid()) out.release(factors);
}

void wait_for_send(SegmentBuilder& out, const CommunicationRow& way, int sent) {
  if (way.overlaps) return;
  out.emit({.name = "sent", .what = Mark{}, .stream = kComputeStream, .after = {sent}});
}

}  // namespace foreshard
