#include "strategy/lower/role_program.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>

#include "strategy/lower/cell.h"
#include "strategy/lower/chunk_program.h"
#include "strategy/lower/flight_places.h"
#include "strategy/lower/loss_scale.h"

namespace foreshard {

namespace {

// Segments of one chunk, in the order in which a SharedProgram keeps them.
enum Variant : std::size_t {
  FirstForward,
  Forward,
  Receive,          // of the input of a forward, ahead of that
  ReceivedForward,  // whose input Receive has received
  FirstBackward,
  Backward,
  LastBackward,
  OnlyBackward,
  FirstInputs,
  Inputs,
  Finish,
  KeepingFinish,  // keeps the version of the weights that it overwrites
  Gather,
  Measure,
  Norm,
  kVariants
};

class RoleBuilder {
 public:
  RoleBuilder(Lowering& lowering, int index, SharedPrograms& known) : lowering_(lowering), index_(index), known_(known) {}

  void build() {
    lowering_.begin_role(index_);
    set_up();
    const auto all = [](const ScheduleOp&) { return true; };
    pool_ = {.places = shares_places() ? pool_places(lowering_, stages()) : std::vector<std::vector<int>>{},
             .slots = most_in_flight(all),
             .early = most_between(Work::F, Work::I, all),
             .deferred = most_between(Work::I, Work::W, all)};
    if (in_one_place(pool_)) pool_.early = pool_.deferred = pool_.slots;
    for (int chunk = 0; chunk < chunks(); ++chunk)
      chunks_.push_back(std::make_unique<ChunkProgram>(ChunkFrame{lowering_, role_, index_, chunk, stage_of(chunk)},
                                                       ring_slots_of(stage_of(chunk)), pool_));
    for (int chunk = 0; chunk < chunks(); ++chunk) {
      const int stage = stage_of(chunk);
      chunks_[static_cast<std::size_t>(chunk)]->meet(previous_is_here(stage) ? chunk_with(stage - 1) : nullptr,
                                                     next_is_here(stage) ? chunk_with(stage + 1) : nullptr);
    }
    make_segments();
    add_actions();
    lowering_.plan.roles.push_back(std::move(role_));
  }

 private:
  int stage_of(int chunk) const { return stages()[static_cast<std::size_t>(chunk)]; }
  const ScheduleTable& table() const { return lowering_.tables.schedule; }
  const std::vector<int>& stages() const { return table().stages_of_rank[static_cast<std::size_t>(index_)]; }
  int chunks() const { return static_cast<int>(stages().size()); }
  int chunk_of(int stage) const { return table().chunk_of(stage); }
  bool next_is_here(int stage) const { return !table().is_last(stage) && table().rank_of(stage + 1) == index_; }
  bool previous_is_here(int stage) const { return !table().is_first(stage) && table().rank_of(stage - 1) == index_; }
  const ChunkProgram* chunk_with(int stage) const { return chunks_[static_cast<std::size_t>(chunk_of(stage))].get(); }
  int microbatches() const { return lowering_.plan.microbatches / table().routes; }  // of a chunk
  int per_update() const { return microbatches() / table().updates; }
  bool splits() const { return table().splits; }
  bool shares_places() const { return (chunks() > 1 || splits()) && lowering_.tables.activations.shared_by_chunks; }
  const Update& update() const { return lowering_.tables.update; }
  const std::vector<ScheduleOp>& list() const { return table().order[static_cast<std::size_t>(index_)]; }

  void set_up() {
    role_.name = "stage " + std::to_string(index_);
    if (chunks() > 1) {
      role_.name = "stages ";
      for (int chunk = 0; chunk < chunks(); ++chunk)
        role_.name += (chunk > 0 ? "," : "") + std::to_string(table().model_stage(stage_of(chunk)));
    }
    role_.device_kind = lowering_.plan.costs.front().device_kind;
    role_.axes = lowering_.axes;
    role_.streams = lowering_.tables.communication.streams;
    lowering_.embedding_here.reset();
    if (!update().measures()) return;
    const DType type = lowering_.compute_type() == DType::F64 ? DType::F64 : DType::F32;
    role_.buffers.push_back(
        {.name = "gradient norm", .category = Category::Gradients, .dtype = type, .bytes = size_of(type), .resident = true});
    lowering_.norm = {0};
    if (!update().scales_dynamically) return;
    lowering_.loss_scale = {1};
    role_.buffers.push_back({.name = "loss scale",
                             .category = Category::Optimizer,
                             .dtype = DType::F32,
                             .bytes = size_of(DType::F32) * kLossScaleState,
                             .resident = true});
  }

  // The most that one kind of work has begun and another has not ended, in list order.
  template <class Belongs>
  int most_between(Work begins, Work ends, Belongs belongs) const {
    int now = 0, most = 1;
    for (const ScheduleOp& op : list()) {
      if (!belongs(op)) continue;
      now += op.work == begins ? 1 : op.work == ends ? -1 : 0;
      most = std::max(most, now);
    }
    return most;
  }
  // Forwards minus backwards.
  template <class Belongs>
  int most_in_flight(Belongs belongs) const {
    return most_between(Work::F, splits() ? Work::W : Work::B, belongs);
  }

  ChunkSlots slots_of(int stage) const {
    const auto at = static_cast<std::size_t>(stage);
    const auto here = [stage](const ScheduleOp& op) { return op.stage == stage; };
    return {.activation = most_in_flight(here),
            .input = std::max(1, lowering_.input_slots[at]),
            .output = 2,
            .gradient_in = lowering_.gradient_slots[at] + 1,  // one more: a gradient may be passed on from where it arrived
            .gradient_out = 2,
            .early = most_between(Work::F, Work::I, here),
            .deferred = most_between(Work::I, Work::W, here)};
  }

  int in_ring(int needed) const { return table().slots_of_ring(microbatches(), needed); }
  ChunkSlots ring_slots_of(int stage) const {
    ChunkSlots slots = slots_of(stage);
    for (int* of : {&slots.activation, &slots.input, &slots.output, &slots.gradient_in, &slots.gradient_out, &slots.early})
      *of = in_ring(*of);
    return slots;
  }

  // What the layers need until the input gradients of a micro-batch and what these leave for its weight gradients follow one another,
  // layer by layer: in one place per micro-batch in flight the memory planner lays the latter where the former was, one layer later.
  // That takes a layer more for each place, and saves the places by which two rings of their own are more. (With several chunks the
  // rings are full at different times, and share bytes better than that.)
  bool in_one_place(const ActivationPool& pool) const {
    const int layers = lowering_.layers_of(stage_of(0));
    return splits() && chunks() == 1 && (pool.early + pool.deferred - pool.slots) * layers > pool.slots;
  }

  std::string parts_text(int layer) const {
    const CommunicationPolicy& communication = lowering_.tables.communication;
    if (communication.parts.empty()) return "";
    return "p" + std::to_string(communication.parts_of(layer, 0)) + "." + std::to_string(communication.parts_of(layer, 1));
  }

  std::string moves_text(int stage) const {
    std::string text;
    const int first = lowering_.first_layer(stage), count = lowering_.layers_of(stage);
    const auto add = [&](ValueMove::At at) { text += std::to_string(at.layer - first) + "." + std::to_string(at.op) + ","; };
    for (const ValueMove& move : lowering_.tables.activations.moves) {
      if (move.layer < first || move.layer >= first + count) continue;
      add({move.layer, move.value}), add(move.leaves), add(move.returns);
      text += std::to_string(static_cast<int>(move.home)) + (move.computes_wait_back ? "w;" : ";");
    }
    return text;
  }

  // Roles with equal signatures have the same buffers and events at the same indices, so they share segments.
  std::string signature() const {
    const bool cells = std::ranges::any_of(list(), &ScheduleOp::with_next);
    std::string text = table().routes > 1 || cells ? "rank " + std::to_string(index_) : "";  // groups, segments of its own
    if (lowering_.weight_slots > 1) text += "versions " + std::to_string(lowering_.weight_slots);
    if (receives_ahead()) text += "receives ahead";
    if (keeps_overwritten()) text += "keeps";
    if (lowering_.tables.update.delay_annealing > 0 && table().asynchronous())
      text += "delay " + std::to_string(table().delays[static_cast<std::size_t>(index_)]);
    for (int chunk = 0; chunk < chunks(); ++chunk) {
      const int stage = stage_of(chunk);
      text += table().is_first(stage) ? "first" : "";
      text += table().is_last(stage) ? "last" : "";
      const int wraps_forward = index_ + 1 == table().ranks(), wraps_backward = index_ == 0;
      text += wraps_forward ? ">" : "";
      text += wraps_backward ? "<" : "";
      for (int l = lowering_.first_layer(stage); l < lowering_.first_layer(stage) + lowering_.layers_of(stage); ++l)
        text += std::to_string(lowering_.graph.layers[static_cast<std::size_t>(l)].kind) + "r" +
                std::to_string(lowering_.tables.activations.row_of(l)) + parts_text(l) + ",";
      text += ";" + moves_text(stage);
      const std::vector<StageRuns>& runs_of_stage = lowering_.tables.activations.runs_of_stage;
      if (runs_of_stage.empty()) continue;
      const StageRuns& runs = runs_of_stage[static_cast<std::size_t>(stage)];
      for (const OpRun& run : runs.runs)
        text += std::to_string(run.layer) + "." + std::to_string(run.op) + (run.backward ? "b" : "f");
      text += "turn" + std::to_string(runs.turn);
    }
    return text;
  }

  // The global norm: the sum of all ranks' parts.
  Segment norm_segment() const {
    SegmentBuilder out("norm", {});
    // The updates behind it need it, so it stands among the computes: tensor collectives then have their links to themselves.
    const CommunicationRow& way = lowering_.communication(Purpose::NormSum);
    Instruction sum{.name = "sum of norms", .what = Mark{}, .stream = way.stream};
    const Buffer& buffer = role_.buffers[lowering_.norm.index()];
    if (const GroupId all = lowering_.group_of_roles(LayoutGroup::Roles::All); all.valid()) {
      sum.what = Collective{.kind = CollectiveKind::AllReduce,
                            .algorithm = way.algorithm.value_or(Algorithm::Ring),
                            .group = all,
                            .bytes = buffer.bytes,
                            .dtype = buffer.dtype};
      sum.reads = sum.writes = {{.buffer = lowering_.norm}};
    }
    out.emit(std::move(sum));
    if (update().scales_dynamically) out.emit(judge_overflow(lowering_.norm, {.state = lowering_.loss_scale}));
    return out.take();
  }

  SegmentId add(Segment segment) {
    lowering_.plan.segments.push_back(std::move(segment));
    return {static_cast<std::int32_t>(lowering_.plan.segments.size()) - 1};
  }

  void make_segments() {
    auto [entry, fresh] = known_.try_emplace(signature());
    segments_ = &entry->second.segments;
    if (!fresh) {
      role_.buffers.insert(role_.buffers.end(), entry->second.scratch.begin(), entry->second.scratch.end());
      for (const auto& [buffer, chunk] : entry->second.deferred)
        role_.buffers[buffer.index()].offsets.assign(
            static_cast<std::size_t>(chunk < 0 ? pool_.deferred : slots_of(stage_of(chunk)).deferred), Bytes{});
      return;
    }
    const auto before = static_cast<std::ptrdiff_t>(role_.buffers.size());
    const int m = per_update();
    const StateRow& state = lowering_.tables.state.back();  // rows are cut alike
    const bool first_differs = state.parameters_arrive();
    const bool last_differs = m > 1;
    const bool gathers = state.parameters.gathered_next_run;
    for (auto& chunk : chunks_) {
      std::vector<SegmentId> of(kVariants);
      of[FirstForward] = add(chunk->forward({.waits_for_parameters = first_differs}));
      of[Forward] = first_differs && m > 1 ? add(chunk->forward({})) : of[FirstForward];
      if (receives_ahead()) {
        of[Receive] = add(chunk->receive());
        of[ReceivedForward] = add(chunk->forward({.waits_for_parameters = first_differs, .received = true}));
      }
      if (splits()) {
        of[FirstInputs] = add(chunk->backward({.half = Work::I, .accumulates = false}));
        if (m > 1) of[Inputs] = add(chunk->backward({.half = Work::I, .accumulates = true}));
      }
      const Work half = splits() ? Work::W : Work::B;
      if (last_differs) {
        of[FirstBackward] = add(chunk->backward({.half = half, .accumulates = false, .last = false}));
        of[Backward] = m > 2 ? add(chunk->backward({.half = half, .accumulates = true, .last = false})) : SegmentId{};
        of[LastBackward] = add(chunk->backward({.half = half, .accumulates = true, .last = true}));
      } else {
        of[OnlyBackward] = add(chunk->backward({.half = half, .accumulates = false, .last = true}));
      }
      of[Finish] = add(chunk->finish(false));
      if (keeps_overwritten()) of[KeepingFinish] = add(chunk->finish(true));
      if (update().measures()) {
        of[Measure] = add(chunk->measure(chunk == chunks_.front()));
        if (chunk == chunks_.front()) of[Norm] = add(norm_segment());
      }
      if (gathers) of[Gather] = add(chunk->gather());
      segments_->insert(segments_->end(), of.begin(), of.end());
    }
    entry->second.scratch.assign(role_.buffers.begin() + before, role_.buffers.end());
    entry->second.deferred = pool_.deferred_buffers;
  }

  SegmentId segment(int chunk, Variant variant) const {
    return (*segments_)[static_cast<std::size_t>(chunk) * kVariants + variant];
  }

  struct Flight {  // of one chunk
    FlightRings rings = {};
    int forwards = 0, inputs = 0, backwards = 0;
  };

  void add_update(int chunk) {
    std::vector<std::int32_t> made;
    if (lowering_.weight_slots > 1) made.push_back(weights_.slot);
    role_.actions.push_back({segment(chunk, weights_.keeps ? KeepingFinish : Finish),
                             std::move(made),
                             {{Work::Update, table().model_stage(stage_of(chunk)), -1, weights_.version}}});
  }

  int key(const ScheduleOp& op) const { return op.microbatch * chunks() + chunk_of(op.stage); }

  void add(const ScheduleOp& op, Flight& flight, Variant variant) {
    role_.actions.push_back(
        {segment(chunk_of(op.stage), variant),
         args(op, flight),
         {{op.work, table().model_stage(op.stage), table().microbatch(op), weights_.newest ? -1 : weights_.version}}});
  }

  void add_forward(const ScheduleOp& op, Flight& flight) {
    flight.rings.kept.take(op.microbatch), pooled_.kept.take(key(op));
    if (receives_ahead() && flight.forwards == forwards_ahead()) {
      ++flight.forwards;
      role_.actions.push_back({.segment = segment(chunk_of(op.stage), Receive), .args = args(op, flight)});
      return add(op, flight, ReceivedForward);
    }
    if (splits()) flight.rings.early.take(op.microbatch), pooled_.early.take(key(op));
    add(op, flight, flight.forwards == 0 || table().asynchronous() ? FirstForward : Forward);  // waits for what it reads
    ++flight.forwards;
  }

  void add_inputs(const ScheduleOp& op, Flight& flight) {
    flight.rings.deferred.take(op.microbatch), pooled_.deferred.take(key(op));
    add(op, flight, flight.inputs == 0 ? FirstInputs : Inputs);
    flight.rings.early.give_back(op.microbatch), pooled_.early.give_back(key(op));
    ++flight.inputs;
  }

  void add_backward(const ScheduleOp& op, Flight& flight) {
    const int m = per_update(), of_update = flight.backwards % m;
    Variant variant = Backward;
    if (of_update == 0)
      variant = m == 1 ? OnlyBackward : FirstBackward;
    else if (of_update + 1 == m)
      variant = LastBackward;
    add(op, flight, variant);
    flight.rings.kept.give_back(op.microbatch), pooled_.kept.give_back(key(op));
    if (splits()) flight.rings.deferred.give_back(op.microbatch), pooled_.deferred.give_back(key(op));
    ++flight.backwards;
  }

  std::vector<std::int32_t> args(const ScheduleOp& op, const Flight& flight) const {
    const ChunkSlots& slots = slots_[static_cast<std::size_t>(chunk_of(op.stage))];
    std::vector<std::int32_t> all = {table().microbatch(op),  flight.rings.kept.at(op.microbatch), ring(op, slots.input),
                                     ring(op, slots.output),  ring(op, slots.gradient_in),         ring(op, slots.gradient_out),
                                     pooled_.kept.at(key(op))};
    if (lowering_.weight_slots > 1) all.push_back(weights_.slot);
    if (!splits()) return all;
    int handover = 0;  // the ring of the stage that comes next on the same rank
    if (op.work == Work::F && next_is_here(op.stage)) handover = op.microbatch % slots_of_stage(op.stage + 1).input;
    if (op.work == Work::I && previous_is_here(op.stage)) handover = op.microbatch % slots_of_stage(op.stage - 1).gradient_in;
    for (const int more : {flight.rings.early_at(op.microbatch), pooled_.early_at(key(op)),
                           flight.rings.deferred_at(op.microbatch), pooled_.deferred_at(key(op)), handover})
      all.push_back(more);
    return all;
  }
  int ring(const ScheduleOp& op, int needed) const { return table().slot_in_ring(op.microbatch, microbatches(), needed); }
  const ChunkSlots& slots_of_stage(int stage) const { return slots_[static_cast<std::size_t>(chunk_of(stage))]; }

  void add_actions() {
    role_.actions.reserve(list().size() + 3 * chunks_.size() + 1);  // and gathers, measures, updates and the sum of norms
    std::vector<Flight> flights(chunks_.size());
    const int m = microbatches();
    const auto fill = [&](FlightRings& rings, int kept, int early, int deferred, int keys) {
      if (table().asynchronous())
        rings.kept.fix(keys, [&](int key) { return table().slot_in_ring(key, m, kept); });
      else
        rings.kept.fill(kept, keys);
      if (splits()) rings.early.fill(early, keys), rings.deferred.fill(deferred, keys);
      rings.one_place = early == kept && deferred == kept;
    };
    fill(pooled_, pool_.slots, pool_.early, pool_.deferred, m * chunks());
    for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
      slots_.push_back(slots_of(stage_of(static_cast<int>(chunk))));
      const ChunkSlots& slots = slots_.back();
      fill(flights[chunk].rings, slots.activation, slots.early, slots.deferred, m);
      const SegmentId gather = segment(static_cast<int>(chunk), Gather);
      if (gather.valid()) role_.actions.push_back({.segment = gather});
    }
    std::vector<std::int32_t> last_action;  // [position]: the last of the actions up to it
    std::size_t of_cell = 0;                // actions since it began
    for (std::size_t position = 0; position < list().size(); ++position) {
      const ScheduleOp& op = list()[position];
      Flight& flight = flights[static_cast<std::size_t>(chunk_of(op.stage))];
      if (table().asynchronous()) weights_ = table().weights[static_cast<std::size_t>(index_)][position];
      if (op.work == Work::Update)
        add_update(chunk_of(op.stage));
      else if (op.work == Work::F)
        add_forward(op, flight);
      else if (op.work == Work::I)
        add_inputs(op, flight);
      else
        add_backward(op, flight);
      last_action.push_back(static_cast<std::int32_t>(role_.actions.size()) - 1);
      ++of_cell;
      if (op.with_next) continue;
      if (of_cell > 1) join_last(of_cell);
      of_cell = 0;
    }
    if (table().asynchronous()) return issue_ahead(last_action);
    for (int chunk = 0; chunk < chunks() && update().measures(); ++chunk)
      role_.actions.push_back({.segment = segment(chunk, Measure)});
    if (update().measures()) role_.actions.push_back({.segment = segment(0, Norm)});
    for (int chunk = 0; chunk < chunks(); ++chunk) add_update(chunk);
  }

  int forwards_ahead() const { return static_cast<int>(table().ahead[static_cast<std::size_t>(index_)].size()); }
  bool receives_ahead() const {
    return table().asynchronous() && table().receives_ahead[static_cast<std::size_t>(index_)] != 0;
  }
  bool keeps_overwritten() const {
    return table().asynchronous() &&
           std::ranges::any_of(table().weights[static_cast<std::size_t>(index_)], &ScheduleTable::Weights::keeps);
  }
  // Nothing that a rank sends ahead may be received behind the end of a run: the last such receive is an action of its own at the end.
  void issue_ahead(const std::vector<std::int32_t>& last_action) {
    for (const int position : table().ahead[static_cast<std::size_t>(index_)])
      role_.ahead.push_back(last_action[static_cast<std::size_t>(position)]);
    if (receives_ahead()) role_.ahead.push_back(last_action.back());
  }

  // The last actions as one: a forward and a backward, or both halves of one, in turns.
  void join_last(std::size_t count) {
    const auto first = role_.actions.end() - static_cast<std::ptrdiff_t>(count);
    std::vector<SegmentId> key;
    Action cell;
    for (auto action = first; action != role_.actions.end(); ++action) {
      key.push_back(action->segment);
      cell.args.insert(cell.args.end(), action->args.begin(), action->args.end());
      cell.does.insert(cell.does.end(), action->does.begin(), action->does.end());
    }
    auto [known, fresh] = cells_.try_emplace(key);
    if (fresh) {
      const auto segment_at = [&](std::size_t i) -> const Segment& { return lowering_.plan.segments[key[i].index()]; };
      const Segment backward = count == 2 ? segment_at(1) : joined(segment_at(1), segment_at(2));
      known->second = add(in_turns(segment_at(0), backward, lowering_.hidden_stream(), table().delays_weights, role_));
    }
    cell.segment = known->second;
    role_.actions.erase(first, role_.actions.end());
    role_.actions.push_back(std::move(cell));
  }

  Lowering& lowering_;
  int index_;
  SharedPrograms& known_;
  Role role_ = {};
  std::vector<std::unique_ptr<ChunkProgram>> chunks_ = {};
  std::vector<ChunkSlots> slots_ = {};
  ActivationPool pool_ = {};
  FlightRings pooled_ = {};              // of all chunks together
  ScheduleTable::Weights weights_ = {};  // of the action being added
  std::vector<SegmentId>* segments_ = nullptr;
  std::map<std::vector<SegmentId>, SegmentId> cells_ = {};  // of the actions that a cell joins
};

}  // namespace

void add_role(Lowering& lowering, int index, SharedPrograms& known) { RoleBuilder(lowering, index, known).build(); }

}  // namespace foreshard
