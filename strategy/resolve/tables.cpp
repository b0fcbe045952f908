#include "strategy/resolve/tables.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/base/error.h"
#include "strategy/cost/runtime_policy.h"
#include "strategy/resolve/compression.h"
#include "strategy/resolve/layer_parts.h"
#include "strategy/resolve/redone_layers.h"
#include "strategy/resolve/resolve.h"
#include "strategy/resolve/schedule_table.h"

namespace foreshard {

Kinds GradientSum::codes_over() const {
  Kinds kinds;
  for (const AxisKind& kind : over)
    if (std::ranges::find(first, kind) == first.end()) kinds = kinds.with(kind);
  return kinds;
}

static void add_way(CommunicationPolicy& policy, Purpose purpose, const Stream& stream) {
  policy.rows.push_back({.purpose = purpose, .stream = {static_cast<std::int32_t>(policy.streams.size())}});
  policy.streams.push_back(stream);
}

namespace {

using enum DenseKind;
const Kinds kReplicas = {OuterData, Data, Context}, kShards = {Data, Context}, kTensor = {Tensor},
            kExpertReplicas = {OuterData, ExpertKind::ExpertData}, kExpertShards = {ExpertKind::ExpertData};

// The streams of every role, in this order. Replicas have one communicator, on which collectives run one after the other (Zhao et al. 2023,
// "PyTorch FSDP", arXiv:2304.11277, section 3.3.2), so sums of gradients and gathers of parameters share the stream kReplicated. Ranks that
// share experts have another communicator than tensor-parallel ranks, so rows of tokens do not queue behind gathers, nor gathers behind them.
enum Streams : std::int32_t {
  kCompute,
  kSendForward,
  kReceiveForward,
  kSendBackward,
  kReceiveBackward,
  kReplicated,
  kTensors,
  kExperts  // of models with experts
};

// The properties of a strategy that its rows follow from.
struct Choice {
  const Strategy& strategy;
  StateTypes types;
  bool ties;            // the head's weights are the token embedding
  StateCuts cut;        // nothing where there is nothing to shard over
  bool ends_apart;      // the first and the last stage are on different ranks
  bool keeps_versions;  // of the weights: what is updated is then the master copy
  bool updates_once;    // each stage is on one rank, which updates it once in a run
  bool experts;         // some layers are mixtures of experts
  bool served;          // by asynchronous servers, of which it is one worker
  StreamId tensors() const { return {strategy.communication.overlap->tp ? kTensors : kCompute}; }
  StreamId between_experts() const { return {strategy.communication.overlap->tp ? kExperts : kCompute}; }
  bool measures() const { return *strategy.optimizer.clip_norm > 0 || strategy.optimizer.loss_scale == 0; }
  // Gradients of trained parameters that are not cut are partial sums over tensor-parallel ranks: norms and biases behind a reduce-scatter,
  // and the whole matrix of each adapter.
  bool partial() const { return (strategy.sequence_parallel || strategy.optimizer.lora.any()) && strategy.tp > 1; }
  // Data-parallel ranks hold different shards or experts, so the gradient norm is summed over them, too.
  bool measures_over_data() const { return cut.optimizer || experts; }
  Kinds norm_kinds() const { return measures_over_data() ? Kinds{Data, Context, Tensor} : kTensor; }
  int expert_replicas() const { return strategy.dp * strategy.cp * strategy.tp / (strategy.experts.ep * strategy.experts.etp); }
  bool staged() const { return !strategy.stages.empty(); }
  bool ties_stages() const { return ties && ends_apart; }
  // The gradient of a tied embedding is summed once, over the replicas of both stages. Where it is sharded, and in frameworks, replicas
  // sum first, then each replica its two stages.
  bool sums_tied_once() const { return staged() || (!cut.optimizer && strategy.framework == Strategy{}.framework); }
  bool cuts_transfers() const {  // with sequence parallelism each rank has its part only
    return strategy.communication.transfers == Transfers::Split && strategy.tp > 1 && !strategy.sequence_parallel;
  }
};

Choice choice_of(const Model& model, const Strategy& s, const ScheduleTable& schedule, bool served) {
  const auto* transformer = std::get_if<Transformer>(&model.shape);
  StateCuts cuts = cuts_of_zero(s.zero.stage);
  // States in host memory are sharded like the optimizer's: the ranks of a node hold them once, and each updates its shard.
  cuts.parameters |= cuts.optimizer && s.offload.parameters != Space::Device;
  cuts.gradients |= cuts.parameters || (cuts.optimizer && s.offload.gradients != Space::Device);
  const int inner = cuts.optimizer ? s.zero.group : s.dp;
  return {.strategy = s,
          .types = state_types(s),
          .ties = transformer && shares_embedding(*transformer) && !s.optimizer.lora.any(),
          .cut = inner * s.cp > 1 ? cuts : StateCuts{},
          .ends_apart = !schedule.ends_hold_both(),
          .keeps_versions = std::ranges::any_of(schedule.weight_slots, [](int slots) { return slots > 1; }),
          .updates_once = schedule.routes == 1 && !schedule.asynchronous(),
          .experts = transformer && transformer->block.experts.count > 0,
          .served = served};
}

// Whether updates run beside the next forward: gradients are summed in the order in which the next forward needs the parameters, and a
// layer of it waits only for its own. Possible where each unit can be updated without the others.
bool updates_beside_forward(const Choice& choice) {
  const Strategy& s = choice.strategy;
  const OffloadChoice& away = s.offload;
  const bool stays = away.optimizer == Space::Device && away.parameters == Space::Device && away.gradients == Space::Device;
  return s.communication.order == SumOrder::Priority && s.communication.overlap->gradients && s.dp * s.cp > 1 && stays &&
         !away.update_per_layer && !choice.cut.optimizer && !choice.measures() && !choice.staged() && choice.updates_once &&
         s.framework == Strategy{}.framework;
}

StateRow row_for_all(const Choice& choice) {
  using When = GradientSum::When;
  const Strategy& s = choice.strategy;
  const bool adam = s.optimizer.kind == OptimizerKind::Adam;
  const bool taken_away = s.offload.gradients != Space::Device || s.offload.update_per_layer;  // summed before they leave
  const bool one_microbatch = s.batch.global == s.batch.micro * s.dp;
  const When last = s.communication.overlap->gradients || taken_away ? When::LastMicrobatch : When::AtEnd;
  const auto& [parameters, gradients, optimizer] = choice.cut;
  const bool away = s.offload.parameters != Space::Device || taken_away;
  const bool by_layer = gradients || away;
  StateRow row{.unit = by_layer ? Unit::Layer : Unit::Bucket, .bucket = by_layer ? Bytes{} : s.communication.bucket};
  row.parameters.dtype = choice.types.param, row.gradients.dtype = choice.types.grad;
  row.optimizer = {.master = choice.types.master || choice.keeps_versions,
                   .momentum = adam || s.optimizer.momentum > 0,
                   .variance = adam,
                   .dtype = choice.types.state,
                   .home = s.offload.optimizer,
                   .kept = s.offload.optimizer_kept,
                   .updated_by = s.offload.updated_on == UpdatedOn::Host ? Processor::Host : Processor::Device};
  if (!optimizer) row.gradients.sums = {{"all-reduce gradients", kReplicas, last}};
  if (optimizer) {
    row.optimizer.cut_by = kShards;
    row.gradients.sums = {{"reduce-scatter gradients", kShards, gradients ? When::EachMicrobatch : last},
                          {"all-reduce shards", {OuterData}, gradients ? When::LastMicrobatch : last}};
    row.parameters.gathered_next_run =
        !parameters && s.communication.overlap->parameters && s.offload.parameters == Space::Device;
  }
  row.parameters.home = s.offload.parameters, row.gradients.home = s.offload.gradients;
  if (gradients) row.gradients.cut_by = kShards;
  row.optimizer.with_backward = s.offload.update_per_layer;
  row.optimizer.beside_forward = updates_beside_forward(choice);
  row.gradients.kept = !(s.offload.update_per_layer && one_microbatch && !gradients && row.gradients.home == Space::Device);
  if (row.writes_gradients_to_slots())
    row.gradients.slots = s.communication.overlap->gradients || row.optimizer.with_backward ? 2 : 1;
  if (parameters) row.parameters.cut_by = kShards;
  if (row.brings_parameters()) {
    const bool ahead = s.communication.overlap->parameters;
    row.parameters.stays.rule = BlockRule{.ahead_forward = ahead ? 1 : 0, .ahead_backward = ahead ? 1 : 0};
    if (const RuntimePolicy* policy = policy_of(s); policy && policy->layers) row.parameters.stays = *policy->layers;
  }
  return row;
}

// What is left of a row for parameters that are only read: where they lie, and when they are gathered.
StateRow frozen_row(const StateRow& all) {
  StateRow row{.tensors = Tensors::Frozen, .unit = all.unit, .trained = false, .parameters = all.parameters};
  row.parameters.gathered_next_run = false;
  row.optimizer.cut_by = all.parameters.cut_by;  // the group that gathers them
  return row;
}

// The compression of gradient sums over replicas. A worker of asynchronous servers sums nothing: of its codes the rows say only which parameters
// are sent as they are.
std::optional<Coding> coding_of(const Choice& choice) {
  const Strategy& s = choice.strategy;
  if (!choice.served && s.dp * s.cp * schedule_entry(*s.pipeline.schedule).routes == 1) return {};
  return gradient_coding(s);
}
// Whether some replicas, mostly those of a node, add their gradients before they send codes to others.
bool sums_before_codes(const Choice& choice) { return coding_of(choice) && choice.strategy.communication.compress_group > 1; }

StatePolicy state_policy(const Choice& choice) {
  StatePolicy policy;
  StateRow all = row_for_all(choice);
  if (choice.measures_over_data() && !choice.cut.optimizer) all.gradients.measured_alike = kShards;
  if (choice.strategy.optimizer.lora.any()) policy.push_back(frozen_row(all));
  if (choice.ties && (all.writes_gradients_to_slots() || choice.ties_stages())) {
    StateRow tied = all;
    tied.tensors = Tensors::Tied, tied.unit = Unit::Tensor, tied.gradients.slots = 0;
    if (choice.ties_stages() && choice.sums_tied_once()) tied.gradients.sums.clear();
    // Kept on the device until both stages, on one rank or on two, have computed theirs.
    if (choice.strategy.pp > 1) tied.gradients.home = Space::Device, tied.gradients.kept = true;
    if (choice.ties_stages()) tied.gradients.sums.push_back({"sum of tied embeddings", {}, GradientSum::When::AtEnd, true});
    policy.push_back(tied);
  }
  const std::optional<Coding> coding = coding_of(choice);
  if (choice.experts) {
    StateRow experts = all;
    experts.tensors = Tensors::Experts, experts.gradients.slots = 0;
    const bool shared_alone = choice.expert_replicas() == 1;  // nothing to shard: each rank has experts that no other rank has
    for (Kinds* kinds : {&experts.optimizer.cut_by, &experts.gradients.cut_by, &experts.parameters.cut_by})
      if (!kinds->empty()) *kinds = shared_alone ? Kinds{} : kExpertShards;
    if (shared_alone) experts.parameters.gathered_next_run = false;
    std::vector<GradientSum>& sums = experts.gradients.sums;
    if (experts.optimizer.cut_by.empty())
      sums = {{"all-reduce experts", kExpertReplicas, sums.front().when}};
    else  // and the all-reduce of shards
      sums.front().name = "reduce-scatter experts", sums.front().over = kExpertShards;
    experts.gradients.measured_alike = experts.optimizer.cut_by.empty() ? kExpertShards : Kinds{};
    policy.push_back(experts);
  }
  if (choice.strategy.tp > 1 && (choice.partial() || choice.measures() || coding)) {
    StateRow whole = all;
    whole.tensors = Tensors::Whole, whole.bucket = {}, whole.gradients.slots = 0;
    auto& sums = whole.gradients.sums;
    whole.gradients.measured_alike = all.gradients.measured_alike.empty() ? kTensor : Kinds{Data, Context, Tensor};
    if (choice.partial()) sums.insert(sums.begin(), {"sum over tp", kTensor, sums.front().when});
    policy.push_back(whole);
  }
  if (coding) {  // vectors are small and not worth encoding: they are summed uncompressed
    StateRow vectors = all;
    vectors.tensors = Tensors::Vectors, vectors.gradients.slots = 0;
    policy.push_back(vectors);
    all.gradients.sums.front().coding = coding;
    if (sums_before_codes(choice)) all.gradients.sums.front().first = kShards;
    all.optimizer.momentum = all.optimizer.momentum && !coding->encode.velocity;
    if (coding->of_moment) all.optimizer.frozen_after = choice.strategy.communication.gradients.warm_up;
  }
  policy.push_back(all);
  return policy;
}

// GatherToRoot applies to gradient sums only; other collectives use a ring instead.
std::optional<Algorithm> algorithm_of(const CommunicationChoice& choice, Purpose purpose) {
  const bool gathers = choice.algorithm == Algorithm::GatherToRoot;
  return gathers && purpose != Purpose::GradientSum ? Algorithm::Ring : choice.algorithm;
}

CommunicationPolicy communication_policy(const Choice& choice, const ScheduleTable& schedule) {
  using enum Purpose;
  const Strategy& s = choice.strategy;
  const StreamKind communication = StreamKind::Communication;
  CommunicationPolicy policy{.streams = {{"compute", StreamKind::Compute},
                                         {"send forward", communication},
                                         {"receive forward", communication},
                                         {"send backward", communication},
                                         {"receive backward", communication},
                                         {"gradients, parameters", communication},
                                         {"tensor", communication}}};
  if (choice.experts) policy.streams.push_back({"experts", communication});
  const auto back = static_cast<std::int32_t>(policy.streams.size());
  const auto transfers = [&](int chunk, std::int32_t later) {
    for (const auto& [purpose, stream] : {std::pair{SendForward, kSendForward},
                                          {ReceiveForward, kReceiveForward},
                                          {SendBackward, kSendBackward},
                                          {ReceiveBackward, kReceiveBackward}})
      policy.rows.push_back({.purpose = purpose,
                             .chunk = chunk,
                             .stream = {stream + later},
                             .overlaps = s.communication.overlap->p2p,
                             .cut_by = choice.cuts_transfers() ? kTensor : Kinds{}});
  };
  const auto& of = schedule.stages_of_rank;
  // A chunk whose stages run from the last rank to the first sends in the other direction, on streams of its own.
  for (int chunk = 1; of.size() > 1 && chunk < static_cast<int>(of[0].size()); ++chunk)
    if (of[1][static_cast<std::size_t>(chunk)] < of[0][static_cast<std::size_t>(chunk)]) {
      for (const char* name : {"send forward, back", "receive forward, back", "send backward, back", "receive backward, back"})
        policy.streams.push_back({name, communication});
      transfers(chunk, back - kSendForward);
    }
  transfers(-1, 0);
  for (const auto& [purpose, stream] : {std::pair{GradientSum, StreamId{kReplicated}},
                                        {ParameterGather, StreamId{kReplicated}},
                                        {Operator, choice.tensors()},
                                        {Experts, choice.between_experts()},
                                        {NormSum, StreamId{kCompute}}}) {
    if (purpose == Experts && !choice.experts) continue;
    policy.rows.push_back({.purpose = purpose,
                           .stream = stream,
                           .algorithm = algorithm_of(s.communication, purpose),
                           .order = s.communication.order,
                           .partition = s.communication.partition,
                           .credit = s.communication.credit});
  }
  if (updates_beside_forward(choice)) add_way(policy, UpdateBesideForward, {"updates", StreamKind::Compute});
  for (CommunicationRow& row : policy.rows) {
    if (row.purpose == Operator) row.coding = activation_coding(s);
    if (row.purpose == Experts) row.dispatch = dispatch_coding(s);
  }
  return policy;
}

// The communicators that the other tables need.
std::vector<LayoutGroup> groups_of(const Choice& choice) {
  using enum LayoutGroup::Roles;
  const Strategy& s = choice.strategy;
  std::vector<LayoutGroup> groups;
  if (choice.staged()) {
    groups.push_back({"tensor", kTensor, choice.tensors()});
    groups.push_back({"data", kReplicas, {kReplicated}});
    return groups;  // lower_stages makes those that connect stages
  }
  groups.push_back({"data", kReplicas, {kReplicated}});
  if (choice.cut.optimizer) {
    groups.push_back({"shards", kShards, {kReplicated}});
    groups.push_back({"replicas", {OuterData}, {kReplicated}});
  }
  if (sums_before_codes(choice)) {
    groups.push_back({"sums before codes", kShards, {kReplicated}});
    groups.push_back({"codes", {OuterData}, {kReplicated}});
  }
  groups.push_back({"tensor", kTensor, choice.tensors()});
  if (choice.partial()) groups.push_back({"tensor gradients", kTensor, {kReplicated}});
  groups.push_back({"context", {Context}, choice.tensors()});
  if (choice.experts) {
    groups.push_back({"expert data", choice.cut.optimizer ? kExpertShards : kExpertReplicas, {kReplicated}});
    groups.push_back({"experts", {ExpertKind::Expert}, choice.between_experts()});
    groups.push_back({"parts of experts", {ExpertKind::ExpertTensor}, choice.between_experts()});
    groups.push_back({"loads of experts", {Context, Tensor}, choice.tensors()});
    const DispatcherRow& dispatcher = row_of(s.experts.dispatcher);
    if (dispatcher.by_node) groups.push_back({"nodes of experts", {ExpertKind::OuterExpert}, choice.between_experts()});
    if (dispatcher.gathers && s.experts.etp > 1)
      groups.push_back({"experts and their parts", {ExpertKind::Expert, ExpertKind::ExpertTensor}, choice.between_experts()});
  }
  if (choice.ties_stages())
    groups.push_back({"tied embeddings", choice.sums_tied_once() ? kReplicas : Kinds{}, {kReplicated}, Tied});
  if (choice.measures()) groups.push_back({"norm", choice.norm_kinds(), {kCompute}, All});
  return groups;
}

// Servers that share the parameters in whole units get about as much each if the units are small.
void share_units(StatePolicy& state, const OpGraph& graph, int servers) {
  constexpr std::int64_t kUnitsPerServer = 8;
  std::int64_t elements = 0;
  for (const OpGraph::Layer& layer : graph.layers)
    for (const Parameter& parameter : graph.kinds[static_cast<std::size_t>(layer.kind)].parameters)
      elements += std::accumulate(parameter.local.begin(), parameter.local.end(), std::int64_t{1}, std::multiplies{});
  for (StateRow& row : state) {
    const Bytes most{std::max<std::int64_t>(1, elements / (kUnitsPerServer * servers)) * size_of(row.gradients.dtype).value};
    row.served = true;
    row.bucket = row.bucket == Bytes{} ? most : std::min(row.bucket, most);
  }
}

}  // namespace

bool belongs(const Parameter& parameter, bool is_embedding, Tensors tensors) {
  switch (tensors) {
    case Tensors::All: return true;
    case Tensors::Frozen: return parameter.frozen;
    case Tensors::Tied: return parameter.tied || is_embedding;
    case Tensors::Experts: return parameter.grid == Grid::Expert;
    case Tensors::Whole: return parameter.split_dim < 0;
    case Tensors::Vectors: return parameter.shape.size() == 1;
  }
  return false;
}

const CommunicationRow& CommunicationPolicy::row(Purpose purpose, int chunk) const {
  const auto found = std::ranges::find_if(
      rows, [&](const CommunicationRow& row) { return row.purpose == purpose && (row.chunk < 0 || row.chunk == chunk); });
  FS_ASSERT(found != rows.end());
  return *found;
}

int CommunicationPolicy::parts_of(int layer, int operation) const {
  for (const PartsRow& row : parts)
    if (row.layers.first <= layer && layer <= row.layers.last)
      return row.counts[std::min(static_cast<std::size_t>(operation), row.counts.size() - 1)];
  return 1;
}

int CommunicationPolicy::sample_groups() const {
  int groups = 1;
  for (const PartsRow& row : parts)
    for (const int n : row.counts) groups = std::lcm(groups, n);
  return groups;
}

int operation_of(const LayerGraph& layer, std::size_t op) {
  const auto ends = [&](const Operator& before) {  // a sum of values without a gradient, such as scores, ends no operation
    if (!before.communication || !before.communication->forward) return false;
    const CollectiveKind kind = *before.communication->forward;
    return (kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter) &&
           layer.values[static_cast<std::size_t>(before.inputs[0])].needs_grad;
  };
  return static_cast<int>(
      std::count_if(layer.operators.begin(), layer.operators.begin() + static_cast<std::ptrdiff_t>(op), ends));
}

void CommunicationPolicy::add_host_ways() {
  add_way(*this, Purpose::CopyToHost, {"to host memory", StreamKind::CopyOut});
  add_way(*this, Purpose::CopyFromHost, {"from host memory", StreamKind::CopyIn});
  add_way(*this, Purpose::HostUpdate, {"host processor", StreamKind::Host});
}

void CommunicationPolicy::add_drive_ways() {
  add_way(*this, Purpose::WriteDrive, {"to drives", StreamKind::Storage});
  add_way(*this, Purpose::ReadDrive, {"from drives", StreamKind::Storage});
}

std::variant<StrategyTables, Infeasible> tables_of(const Model& model, const Strategy& strategy, const OpGraph& graph,
                                                   const TunedRows& tuned) {
  auto layers = stage_layout(graph, strategy.pp * strategy.virtual_stages, strategy.pipeline.layer_split);
  if (auto* refused = std::get_if<Infeasible>(&layers)) return *refused;
  if (auto refused = refuse_layers(strategy.recompute, graph, std::get<StageLayout>(layers), strategy.pp)) return *refused;
  if (auto refused = refuse_parts(strategy, graph)) return *refused;
  StrategyTables tables;
  tables.schedule = schedule_table(strategy);
  const Choice choice = choice_of(model, strategy, tables.schedule, tuned.servers > 0);
  if (!choice.staged()) {
    auto layout = rank_layout(strategy);
    if (auto* refused = std::get_if<Infeasible>(&layout)) return *refused;
    tables.layout = std::get<Layout>(std::move(layout));
  }
  tables.layout.layers = std::get<StageLayout>(std::move(layers));
  tables.layout.groups = groups_of(choice);
  tables.state = state_policy(choice);
  if (tuned.servers > 1) share_units(tables.state, graph, tuned.servers);
  if (tuned.runs.empty())
    tables.activations = activation_policy(strategy, graph, tables.layout.layers);
  else
    tables.activations = {.runs_of_stage = tuned.runs, .shared_by_chunks = false};
  if (tuned.moves) tables.activations.moves = *tuned.moves;
  for (StateRow& row : tables.state)
    if (tuned.regions && std::holds_alternative<RegionRule>(row.parameters.stays.rule))
      row.parameters.stays.rule = *tuned.regions;
  tables.communication = communication_policy(choice, tables.schedule);
  tables.communication.parts = layer_parts(strategy.communication.parts, graph);
  const auto lies_in = [&](Space space) {
    return std::ranges::any_of(tables.activations.rows, [&](const ActivationRow& row) { return row.home == space; }) ||
           std::ranges::any_of(tables.activations.moves, [&](const ValueMove& move) { return move.home == space; });
  };
  if (std::ranges::any_of(tables.state, &StateRow::moves_states) || lies_in(Space::PinnedHost))
    tables.communication.add_host_ways();
  if (std::ranges::any_of(tables.state, [](const StateRow& row) { return row.is_away(Space::Nvme); }) || lies_in(Space::Nvme))
    tables.communication.add_drive_ways();
  tables.update = {.optimizer = strategy.optimizer.kind,
                   .momentum = std::max(0.0, strategy.optimizer.momentum),
                   .clip_norm = *strategy.optimizer.clip_norm,
                   .scales_dynamically = strategy.optimizer.loss_scale == 0,
                   .delay_annealing = strategy.optimizer.delay_annealing,
                   .waits_for_all_sums = strategy.framework != Strategy{}.framework};
  tables.sharding = sharding_of(strategy, choice.types);
  return tables;
}

}  // namespace foreshard
