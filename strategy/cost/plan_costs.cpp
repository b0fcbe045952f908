#include "strategy/cost/plan_costs.h"

#include <algorithm>
#include <map>
#include <optional>

#include "core/network/network.h"
#include "core/plan/ranks.h"
#include "strategy/cost/adapter_cost.h"
#include "strategy/cost/autograd_cost.h"
#include "strategy/cost/collective_cost.h"
#include "strategy/cost/communication_path.h"
#include "strategy/cost/expert_issue.h"
#include "strategy/cost/forwarded_rows.h"
#include "strategy/cost/head_copies.h"
#include "strategy/cost/learned_factors.h"
#include "strategy/cost/narrow_gathers.h"
#include "strategy/cost/operator_facts.h"
#include "strategy/cost/operator_style.h"
#include "strategy/cost/plan_parts.h"
#include "strategy/cost/profile_collective.h"
#include "strategy/cost/profile_time.h"
#include "strategy/cost/shard_messages.h"
#include "strategy/kernels/op_cost.h"

namespace foreshard {

namespace {

constexpr double kHostAdamEfficiency = 0.8;  // share of the host's memory bandwidth that an update on the CPU reaches
constexpr BytesPerSecond kHostCore{10e9};    // assumption: memory bandwidth of one core of the host
constexpr double kNoWire = 1e-9;             // wire factor of a measured copy, whose measured time includes its bytes

class PlanCosts {
 public:
  PlanCosts(const Plan& plan, const Cluster& cluster, const FrameworkPreset& preset, const MachineProfile* profile)
      : plan_(plan), preset_(preset), given_(profile), adapter_rank_(adapter_rank(plan)), network_(cluster), ranks_(plan) {}

  CostTable table(const std::string& device_kind) {
    const bool about = given_ && given_->device == device_kind;
    profile_ = about && (given_->measured() || !given_->learned) ? given_ : nullptr;
    learned_.reset();
    if (about && given_->learned) learned_.emplace(*given_->learned), shapes_.emplace(plan_, preset_);
    CostTable costs{.device_kind = device_kind,
                    .profile_hash = about ? given_->hash : "",
                    .by_segment = std::vector<std::vector<Cost>>(plan_.segments.size())};
    for (std::size_t r = 0; r < plan_.roles.size(); ++r) {
      const Role& role = plan_.roles[r];
      if (role.device_kind != device_kind) continue;
      role_ = {static_cast<std::int32_t>(r)};
      first_ = {.rank = ranks_.first(role_)};
      first_.gpu = &network_.gpu(ranks_.device(first_.rank));
      shards_ = updates_shards(role);
      if (preset_.eight_bits.parameters) narrow_.weights.emplace(plan_, role);
      for (const Action& action : role.actions) {
        std::vector<Cost>& of = costs.by_segment[action.segment.index()];
        if (of.empty()) of = segment_costs(plan_.segments[action.segment.index()]);
      }
    }
    for (std::size_t s = 0; s < plan_.segments.size(); ++s)  // segments that only other devices run get costs of 0
      costs.by_segment[s].resize(plan_.segments[s].instructions.size());
    return costs;
  }

 private:
  const Role& role() const { return plan_.roles[role_.index()]; }
  bool among_tensor_ranks(const Collective& what) const {
    return std::ranges::all_of(plan_.groups[what.group.index()].over,
                               [&](AxisId axis) { return plan_.axes[axis.index()].dense == DenseKind::Tensor; });
  }
  const Gpu& gpu() const { return *first_.gpu; }

  std::vector<Cost> segment_costs(const Segment& segment) {
    std::vector<Cost> costs;
    costs.reserve(segment.instructions.size());
    double computes = 0, host = takes_batch(segment) ? preset_.host.per_microbatch.value : 0;
    IssueClock clock(host);
    sends_once_ = sends_once(segment), capacity_ = has_capacity(segment);
    experts_ = preset_.experts.per_kernel.value > 0 && has_experts(segment);
    beside_ = experts_ && sends_once_ ? beside_rows_of(segment) : std::nullopt;
    recomputes_ = has_phase(segment, Phase::Recompute);
    recomputes_attention_ = recomputes_attention(segment);
    of_segment_ = {};
    bool again = false;  // the compute before was one of a recomputation
    const std::vector<int> forwards = profile_ ? std::vector<int>() : forwarded_rows(plan_, role(), segment);
    narrow_.begin(plan_, role(), segment, profile_ ? EightBits{} : preset_.eight_bits);
    std::vector<double> wires;  // [instruction], seconds
    for (const Instruction& instruction : segment.instructions) {
      last_ = {};
      narrow_.next(segment, wires.size());
      costs.push_back(std::visit([&](const auto& what) { return cost(what, instruction); }, instruction.what));
      if (const int first = forwards.empty() ? -1 : forwards[wires.size()]; first >= 0) {
        const double left = still_to_send(wires[static_cast<std::size_t>(first)], last_.wire);
        costs.back().wire_factor *= left, last_.alone -= last_.alone > 0 ? last_.wire * (1 - left) : 0.0;
      }
      wires.push_back(last_.wire);
      const bool compute = std::holds_alternative<Compute>(instruction.what);
      if (compute) {
        const bool before = again;
        again = std::get<Compute>(instruction.what).phase == Phase::Recompute;
        if (experts_ && again && !before) last_.issue += preset_.experts.per_kernel.value * preset_.experts.calls_per_recompute;
      }
      if (compute) computes += to_seconds(costs.back().busy).value;
      const double busy = compute ? to_seconds(costs.back().busy).value : last_.alone;
      if (compute && waits_for_device(preset_, std::get<Compute>(instruction.what))) clock.wait();
      clock.run(last_.issue, busy);
      host += last_.issue;
    }
    const double spared = profile_ ? join_products(*profile_, segment, costs).value : 0;
    computes -= spared;
    const double copied = of_segment_.copied.value;
    const double exposed = preset_.host.blocking_launches ? host + copied : std::max(copied, clock.exposed() + spared);
    if (exposed > 0 && computes > 0) stretch(segment, costs, (computes + exposed) / computes);
    if (learned_) apply_learned(segment, costs);
    return costs;
  }

  // Multiplies the costs by the factors learned from the user's runs.
  void apply_learned(const Segment& segment, std::vector<Cost>& costs) {
    for (std::size_t i = 0; i < costs.size(); ++i) {
      const Instruction& run = segment.instructions[i];
      const auto part = part_of(plan_, role(), run);
      if (!part) continue;
      const PartShape shape = shapes_->of(role_, *part, run);
      const auto [known, fresh] = factors_.try_emplace(shape, 1.0);
      if (fresh) known->second = learned_->factor(shape);
      costs[i] = scaled(costs[i], known->second);
    }
  }

  static void stretch(const Segment& segment, std::vector<Cost>& costs, double factor) {
    for (std::size_t i = 0; i < costs.size(); ++i)
      if (std::holds_alternative<Compute>(segment.instructions[i].what))
        costs[i].busy = to_nanoseconds(to_seconds(costs[i].busy) * factor);
  }

  Cost cost(const Compute& what, const Instruction& run) {
    if (what.flops.value <= 0 && what.traffic.value <= 0) return {};
    if (profile_)  // as the executor runs it, its start included
      if (const auto measured = profiled_time(*profile_, what)) return {.busy = to_nanoseconds(*measured)};
    Compute styled;
    const double traffic = slowdown_of(gpu(), preset_, what) *
                           static_cast<double>(clipped_slices(plan_, preset_, what) * loss_parts(plan_, preset_, what));
    if (const Bytes logits = gathered_logits(plan_, preset_, what); logits.value > 0) of_segment_.logits = logits;
    const Bytes added = added_bytes(preset_, what, run);
    const Bytes unscored = unscored_bytes(preset_, what);
    const bool plain = traffic == 1.0 && added.value == 0 && unscored.value == 0;
    if (!plain) {
      styled = what;
      if (added.value > 0) styled.accumulate = false, styled.traffic = unadded_traffic(what, run);
      styled.traffic = {static_cast<std::int64_t>(static_cast<double>((styled.traffic - unscored).value) * traffic)};
    }
    const bool coded = is_matrix_product(what.op) && is_code(what.shapes.front().dtype);
    const bool kept = is_matrix_product(what.op) && what.phase == Phase::Recompute && !coded && !recomputes_attention_;
    const bool eight_bits = coded && what.shapes.front().dtype == DType::F8;
    const double share = eight_bits ? 1 / product_speed(preset_.eight_bits, machine_constants(gpu()))
                         : kept     ? preset_.redone_products
                                    : 1.0;
    if (preset_.messages.sums_each_product && is_gated(what.op)) of_segment_.gate = what.phase == Phase::InputGrad;
    const auto part = part_of_experts(preset_, what);
    const Seconds alone =
        part ? op_time(gpu(), part->what, preset_.flash) * part->times : op_time(gpu(), plain ? what : styled, preset_.flash);
    if (alone.value <= 0) return {};
    const Seconds time = alone * share;
    const double tensors = updated_tensors(plan_, role(), preset_, what, run);
    last_.issue = issue_time(preset_, what, experts_).value * tensors +
                  preset_.host.per_kernel.value * operators_of_splitting(what, run) +
                  gradient_loop(preset_, what, run, shards_).value;
    return {.busy = to_nanoseconds(time + weight_cast(what, run) + added_gradients(what, run) + expert_copies(what, run) +
                                   adapter_copies(what) + eight_bit_casts(what) + copied_heads(gpu(), preset_, what) +
                                   copied_samples(gpu(), preset_, what) +
                                   gpu().launch_overhead * further_kernels(preset_, what) * tensors)};
  }
  // PyTorch gathers a list of tensors into one, copies that to the list, and `cat` copies the list: four times the bytes.
  Seconds gather_time(const Collective& maxima) {
    if (of_segment_.logits.value == 0 || !among_tensor_ranks(maxima)) return {};
    Collective gather = maxima;
    gather.kind = CollectiveKind::AllGather, gather.algorithm = Algorithm::Ring;
    gather.bytes = of_segment_.logits, of_segment_.logits = {};
    const CommunicationPath& path = collective_path(gather);
    const Cost cost = collective_cost(gpu(), gather, path);
    return to_seconds(cost.busy) + path.flow * cost.wire_factor + streamed_time(gpu(), gather.bytes * 4);
  }
  // How many operators more the host issues for a product of gathered rows because it is split: the pieces beyond the first, of a rank in
  // the middle, for which the others wait, and one for allocating, slicing and waiting.
  int operators_of_splitting(const Compute& what, const Instruction& run) const {
    const bool reads_rows = what.phase == Phase::Forward || what.phase == Phase::InputGrad;
    if (!preset_.host.splits_products || !is_matrix_product(what.op) || !reads_rows) return 0;
    const auto ranks = of_segment_.gathered.find(run.reads.front().buffer);
    return ranks == of_segment_.gathered.end() ? 0 : std::min(ranks->second, 3);
  }
  // Products in 16 bits under autocast: fp32 weights are read and written narrow, gradients of weights the other way round.
  Seconds weight_cast(const Compute& what, const Instruction& run) const {
    if (!preset_.autocast || !is_matrix_product(what.op) || what.shapes.front().dims.size() < 4) return {};
    const bool forward = what.phase == Phase::Forward || what.phase == Phase::Recompute;
    if (!forward && what.phase != Phase::WeightGrad) return {};
    const auto& uses = forward ? run.reads : run.writes;
    const Category of = forward ? Category::Parameters : Category::Gradients;
    const auto weights = std::ranges::find_if(
        uses, [&](const Use& use) { return role().buffers[use.buffer.index()].category == of && use.length; });
    if (weights == uses.end()) return {};
    const Shape& shape = what.shapes.front();
    const std::int64_t elements = shape.dims[2] * shape.dims[3];
    const Bytes wide = size_of(DType::F32) * elements, narrow = size_of(shape.dtype) * elements;
    const Seconds streamed = op_time(gpu(), {.op = ops::Cast{}, .traffic = wide + narrow});
    return streamed * (1 / preset_.elementwise);
  }
  // What kernels of their own take beside the operators of experts: they sort, pad and join rows and add biases.
  Seconds expert_copies(const Compute& what, const Instruction& run) {
    Seconds time = streamed_time(gpu(), joined_bytes(preset_, what)) * joining_slowdown(gpu(), preset_.styles.joins);
    if (!sends_once_) time += sorting_time(gpu(), preset_, what, capacity_ == true);
    if (!sends_once_ && capacity_ == false) time += streamed_time(gpu(), padded_bytes(preset_, what));
    if (const Bytes scored = scored_bytes(preset_, what); scored.value > 0)
      time += op_time(gpu(), {.op = ops::Cast{}, .traffic = scored}) * (1 / preset_.elementwise);
    if (const auto added = bias_kernels(gpu(), preset_, what, is_biased(what, run))) {
      time += op_time(gpu(), *added);
      last_.issue += preset_.experts.per_kernel.value * kernels_of_biases(preset_, what);
    }
    return time;
  }
  // A product that reads two parameters, or makes two gradients of parameters, has a bias.
  bool is_biased(const Compute& what, const Instruction& run) const {
    const bool gradients = what.phase == Phase::WeightGrad || what.phase == Phase::Backward;
    const Category of = gradients ? Category::Gradients : Category::Parameters;
    return std::ranges::count_if(gradients ? run.writes : run.reads,
                                 [&](const Use& use) { return role().buffers[use.buffer.index()].category == of; }) > 1;
  }
  // What kernels beside the products of adapters and of frozen weights in 8 bits take.
  Seconds adapter_copies(const Compute& what) const {
    if (adapter_rank_ == 0) return {};
    const Bytes passes = adapter_bytes(preset_, adapter_rank_, what),
                frozen = frozen_bytes(preset_, adapter_rank_, what, gpu());
    const Seconds time =
        passes.value > 0 ? op_time(gpu(), {.op = ops::Cast{}, .traffic = passes}) * (1 / preset_.elementwise) : Seconds{};
    return time + streamed_time(gpu(), frozen);
  }
  Seconds eight_bit_casts(const Compute& what) {
    const OperandCast cast = {narrow_.gather ? collective_path(*narrow_.gather).members : 1, narrow_.coded};
    return streamed_time(gpu(), further_casts(what, preset_.eight_bits, machine_constants(gpu()), cast));
  }
  Seconds added_gradients(const Compute& what, const Instruction& run) const {
    Seconds time = {};
    for (const Bytes moved : {summed_bytes(preset_, what), added_bytes(preset_, what, run)})
      if (moved.value > 0) time += op_time(gpu(), {.op = ops::Add{}, .traffic = moved}) * (1 / preset_.elementwise);
    return time + streamed_time(gpu(), filled_bytes(preset_, what));
  }
  Cost cost(const HostCompute& what, const Instruction&) {
    const int node = network_.node(ranks_.device(first_.rank));
    const NodeShape& host = network_.node_shape(node);
    if (const auto core = measured_on_core(what))
      return {.busy = to_nanoseconds(*core * (1.0 / std::max(1, host.cpu_cores / std::max(1, ranks_on(node)))))};
    BytesPerSecond rate = host.host_memory_bandwidth * kHostAdamEfficiency;
    if (host.cpu_cores > 0) rate = std::min(rate, kHostCore * static_cast<double>(host.cpu_cores));
    return {.busy = to_nanoseconds(what.traffic / (rate * (1.0 / std::max(1, ranks_on(node)))))};
  }
  // Where devices are cores of the host, its update runs the device's kernel on as many threads as a rank has cores.
  std::optional<Seconds> measured_on_core(const HostCompute& what) const {
    if (!profile_ || gpu().architecture != "host") return {};
    return profiled_time(*profile_, {.op = what.op, .phase = Phase::Update, .shapes = what.shapes, .traffic = what.traffic});
  }
  // The ranks of a node update at about the same time and share the bandwidth of the host's memory.
  int ranks_on(int node) {
    if (ranks_of_node_.empty())
      for (std::int32_t rank = 0; rank < ranks_.count(); ++rank) ++ranks_of_node_[network_.node(ranks_.device({rank}))];
    return ranks_of_node_[node];
  }
  Cost cost(const Collective& what, const Instruction& instruction) {
    const CommunicationPath path = collective_path(what);
    if (profile_ && path.members < 2) return {};
    if (profile_) {
      if (const auto measured = profiled_collective(*profile_, what, place_of(path))) return measured_cost(path, *measured);
      if (const auto link = link_of(path)) return measured_link(path, *link, path.steps, profile_->collective_share);
    }
    Cost cost = messages_cost(what, path, shard_messages(plan_, role(), preset_, what, instruction, path.members));
    if (beside_) cost = cost_beside(*beside_, what, cost);
    if (narrow_.gather) cost.wire_factor *= narrow_.share;
    if (preset_.shards.gathers_narrow && what.kind == CollectiveKind::AllGather && what.dtype == DType::F32)
      cost.wire_factor /= 2;
    if (narrow_.weights) cost.wire_factor *= narrow_.weights->factor(role(), instruction);
    if (moves_state(role(), instruction)) of_segment_.copied += streamed_time(gpu(), shard_copy_bytes(preset_, what));
    if (gathered_twice(what, instruction)) cost.busy = cost.busy + cost.busy, cost.wire_factor *= 2;
    if (lies_between_operators(plan_, role(), instruction) && among_tensor_ranks(what)) {
      if (what.kind == CollectiveKind::AllGather && computes_wait_for(instruction))
        of_segment_.gathered[instruction.writes.front().buffer] = path.members;
      const double copied = static_cast<double>(what.bytes.value) * preset_.messages.tensor_copies / preset_.elementwise *
                            (narrow_.gather ? narrow_.share : 1.0);
      cost.busy += to_nanoseconds(op_time(gpu(), {.op = ops::Cast{}, .traffic = {static_cast<std::int64_t>(copied)}}));
      if (of_segment_.gate && what.kind == CollectiveKind::AllReduce) {  // two sums, and a kernel that adds their results
        cost.busy = cost.busy + cost.busy + to_nanoseconds(streamed_time(gpu(), what.bytes * 3) * (1 / preset_.elementwise));
        cost.wire_factor *= 2, of_segment_.gate = false;
      }
    }
    cost.busy += to_nanoseconds(gather_time(what));
    last_.issue = preset_.host.per_collective.value;
    last_.wire = path.flow.value * cost.wire_factor;
    if (last_.wire > 0 && computes_wait_for(instruction)) last_.alone = to_seconds(cost.busy).value + last_.wire;
    return cost;
  }
  // Whether parameters that leave the device after a recomputation are gathered again for the gradients: units beyond the reuse distance.
  bool gathered_twice(const Collective& what, const Instruction& instruction) const {
    return recomputes_ && preset_.shards.reuse_distance > 0 && what.kind == CollectiveKind::AllGather &&
           moves_state(role(), instruction) && what.bytes.value / size_of(what.dtype).value > preset_.shards.reuse_distance;
  }
  Cost messages_cost(Collective what, const CommunicationPath& of_all, const ShardMessages& messages) const {
    what.bytes = {static_cast<std::int64_t>(static_cast<double>(what.bytes.value) / messages.count)};
    const CommunicationPath path = part_of(of_all, 1.0 / messages.count);
    const RowKernels kernels = !sends_once_ ? RowKernels::Nccl : experts_ ? RowKernels::HybridEp : RowKernels::DeepEp;
    Cost cost = collective_cost(gpu(), what, path, kernels);
    cost.busy = to_nanoseconds((to_seconds(cost.busy) + messages.host) * (messages.count * messages.volume));
    cost.wire_factor *= messages.volume;
    if (messages.copies.value > 0) cost.busy += to_nanoseconds(op_time(gpu(), {.op = ops::Cast{}, .traffic = messages.copies}));
    return cost;
  }
  // Whether the computes wait for it: a collective of tensor or context parallelism on a stream of its own. Others overlap the computes.
  bool computes_wait_for(const Instruction& instruction) const {
    return role().streams[instruction.stream.index()].kind != StreamKind::Compute &&
           lies_between_operators(plan_, role(), instruction);
  }
  Cost cost(const Exchange& what, const Instruction&) {
    const std::optional<Peer>& peer = what.to ? what.to : what.from;
    const RankId other = ranks_.peer(first_.rank, *peer);
    const bool sends = what.to.has_value();
    const DeviceId here = ranks_.device(first_.rank), there = other.valid() ? ranks_.device(other) : here;
    const CommunicationPath path = route_path(network_, sends ? here : there, sends ? there : here, what.bytes);
    if (profile_)
      if (const auto link = link_of(path)) return measured_link(path, *link, 1, 0);  // a copy engine moves it
    Cost cost = exchange_cost(gpu(), what, path);
    if (sends) cost.busy += to_nanoseconds(preset_.host.per_exchange);
    if (preset_.messages.exchanges_in_turn) cost.wire_factor *= 2;
    return cost;
  }
  // A copy inside the device reads and writes its memory; one to the host uses a copy engine. A profile contains only copies inside the
  // device. If the device is a host processor, its memory is the host's.
  Cost cost(const Copy& what, const Instruction& instruction) const {
    const Space from = role().buffers[instruction.reads[0].buffer.index()].space;
    const Space to = role().buffers[instruction.writes[0].buffer.index()].space;
    const bool inside = from == Space::Device && to == Space::Device;
    if (profile_ && (inside || gpu().architecture == "host"))
      if (const auto measured = profiled_copy(*profile_, what.bytes))
        return {.busy = to_nanoseconds(*measured), .wire_factor = kNoWire};
    if (inside) return {.busy = to_nanoseconds(op_time(gpu(), {.op = ops::Cast{}, .traffic = what.bytes * 2}))};
    Cost cost = copy_cost(gpu(), what);
    if (from == Space::Nvme || to == Space::Nvme) cost.busy += to_nanoseconds(drive_latency());
    return cost;
  }
  // Of the first request of a copy. The bandwidth of the link to the drives says how many requests are under way after it.
  Seconds drive_latency() const {
    Seconds latency = {};
    for (const LinkId link : network_.host_route(ranks_.device(first_.rank), Endpoint::Nvme, true).links)
      if (network_.link(link).kind == LinkKind::NvmeBus) latency = latency + network_.link(link).latency;
    return latency;
  }
  Cost cost(const Mark&, const Instruction&) const { return {}; }

  static GroupPlace place_of(const CommunicationPath& path) {
    return {.ranks = path.members, .nodes = path.nodes, .link = path.link};
  }
  // Latency and bandwidth between two ranks as measured. Empty: between nodes, where they were not measured.
  std::optional<FittedLink> link_of(const CommunicationPath& path) {
    auto& known = measured_links_[{path.nodes > 1, path.link}];
    if (!known) known = profiled_link(*profile_, place_of(path));
    if (!*known && path.nodes == 1) return FittedLink{profile_->link_latency, profile_->link_bandwidth};
    return *known;
  }
  // Cost of `steps` latency steps at the measured latency, with bytes at the measured bandwidth.
  static Cost measured_link(const CommunicationPath& path, const FittedLink& link, int steps, double share) {
    const double factor = path.bandwidth.value > 0 ? path.bandwidth.value / link.bandwidth.value : 1.0;
    return {.busy = to_nanoseconds(link.latency * steps), .wire_factor = factor, .sm_share = share};
  }
  // The isolated time is the measured one; its part on the wire shares links with other traffic.
  Cost measured_cost(const CommunicationPath& path, const MeasuredTime& time) const {
    const bool flows = path.flow.value > 0 && time.wire.value > 0;
    return {.busy = to_nanoseconds(flows ? time.latency : time.latency + time.wire),
            .wire_factor = flows ? time.wire.value / path.flow.value : kNoWire,
            .sm_share = profile_->collective_share};
  }

  // The path from the first rank of the role; layers repeat the collectives of one layer.
  const CommunicationPath& collective_path(const Collective& what) {
    const auto [known, fresh] =
        first_.paths.try_emplace({what.group, what.kind, what.algorithm, what.servers, what.served_by, what.bytes});
    if (fresh) {
      std::vector<DeviceId> devices;
      for (const RankId member : ranks_.members(what.group, first_.rank)) devices.push_back(ranks_.device(member));
      known->second = communication_path(network_, what, devices);
    }
    return known->second;
  }

  const Plan& plan_;
  const FrameworkPreset& preset_;
  const MachineProfile* given_ = nullptr;
  const MachineProfile* profile_ = nullptr;  // of the device kind that is costed
  std::optional<LearnedFactors> learned_ = {};
  std::optional<PartShapes> shapes_ = {};
  std::map<PartShape, double> factors_ = {};
  bool shards_ = false;                // the ranks of the role that is costed update shards
  bool recomputes_ = false;            // the segment that is costed recomputes something
  bool recomputes_attention_ = false;  // it recomputes attention, too
  struct {
    Seconds copied = {};  // copies of shards
    bool gate = false;    // the gradients of a gated activation's inputs are known, that of its products' input is not summed
    Bytes logits = {};    // of the whole vocabulary, that the next collective of tensor-parallel ranks gathers
    std::map<BufferId, int> gathered = {};  // buffers of rows that were gathered, from how many tensor-parallel ranks
  } of_segment_ = {};
  InstructionSeconds last_ = {};
  NarrowState narrow_ = {};
  bool sends_once_ = false;                // the segment that is costed sends tokens of experts once
  std::optional<BesideRows> beside_ = {};  // of a segment that sends tokens by HybridEP
  std::optional<bool> capacity_ = {};      // whether it dispatches tokens with a capacity; empty: it dispatches none
  std::int64_t adapter_rank_ = 0;
  bool experts_ = false;  // the segment that is costed has experts, and the preset says how the host issues them
  Network network_;
  Ranks ranks_;
  std::map<int, int> ranks_of_node_ = {};
  struct {
    RankId rank = {};
    const Gpu* gpu = nullptr;
    std::map<std::tuple<GroupId, CollectiveKind, Algorithm, int, std::vector<std::int32_t>, Bytes>, CommunicationPath> paths =
        {};       // of its collectives
  } first_ = {};  // the first rank of the role, which stands for all of its ranks
  RoleId role_ = {};
  std::map<std::pair<bool, LinkKind>, std::optional<std::optional<FittedLink>>> measured_links_ = {};
};

}  // namespace

void cost_plan(Plan& plan, const Cluster& cluster, const FrameworkPreset& preset, const MachineProfile* profile) {
  std::vector<std::string> kinds;
  for (const Role& role : plan.roles)
    if (std::find(kinds.begin(), kinds.end(), role.device_kind) == kinds.end()) kinds.push_back(role.device_kind);
  std::vector<CostTable> tables;
  PlanCosts costs(plan, cluster, preset, profile);
  for (const std::string& kind : kinds) tables.push_back(costs.table(kind));
  plan.costs = std::move(tables);
}

}  // namespace foreshard
