// The Plan: the program that every rank runs. The simulator and the executors (host, CUDA) read the same plan. A plain value.
//
//   Plan -> roles -> actions (issue order) -> segments (shared) -> instructions
//
// Meaning, the same for simulator and executors:
//   issue order   a role issues its actions in order, and the instructions of each action in order; nothing waits between actions
//   next run      begins after the last action of this one. A role may issue its first actions earlier (Role::ahead): then its next run
//                 begins while this one ends. Such actions complete without any later action of their run, on all ranks
//   stream        instructions of one stream run one after another, in issue order
//   event         `wait (e, slot)` binds to the newest `record (e, slot)` issued before it by the same rank. If there is none in
//                 this run, it binds to the last one of the previous run of the plan (in the first run it does not wait)
//   ranks         synchronise only in exchanges and collectives, which pair up in issue order per (peer, tag) or per group; both
//                 sides of an exchange have to arrive before the first byte moves
//   memory        a block (buffer, slot) is alive from the start of the instruction that acquires it to the end of the one that
//                 releases it, and may live several times; a block has one offset for the whole plan. Resident buffers are
//                 never acquired. The blocks alive at the end of a run are those alive at its start, apart from those that actions
//                 issued ahead acquired for the next run
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/ids.h"
#include "core/base/units.h"
#include "core/op/operation.h"
#include "core/plan/axis.h"

namespace foreshard {

// ---- who: axes, roles, groups ---------------------------------------------------------------------------------------------
// Axes and their kinds: core/plan/axis.h. A role has a subset of the plan's axes.

// Ranks that share a communicator. An instance of the group has the ranks of `roles` (empty: of the rank's own role) with all coordinates
// on the axes `over` and equal coordinates on the other axes. Members are ordered by position of their role in `roles`, then by
// coordinates, the last axis of `over` fastest.
struct Group {
  std::string name = {};
  std::vector<RoleId> roles = {};
  std::vector<AxisId> over = {};
  bool operator==(const Group&) const = default;
};

// The other end of an exchange, relative to the rank: role index own + role_shift, coordinate (own + shift) mod size on `axes`. Several axes
// together count as one, whose coordinate the last of them changes fastest: a ring over context ranks whose axis is split.
struct Peer {
  std::int32_t role_shift = 0;
  std::vector<AxisId> axes = {};
  std::int32_t shift = 0;
  bool operator==(const Peer&) const = default;
};

// ---- what: tensors and memory ---------------------------------------------------------------------------------------------
// A whole tensor of the model, before any split. Initialisation, checkpoints and gradient checks refer to it.
struct Tensor {
  std::string name = {};
  std::vector<std::int64_t> shape = {};
  DType dtype = DType::F32;
  std::string init = {};    // "normal(0.02)", "zeros", "ones"
  Grid grid = Grid::Dense;  // Expert: a tensor of experts; axes mean their expert kinds
  bool frozen = false;      // no part of it but its value is in a buffer, and no instruction writes that
  bool operator==(const Tensor&) const = default;
};

// What a shard of a logical tensor is: its value, its gradient or an optimizer state.
enum class TensorPart : std::uint8_t { Value, Gradient, Master, Momentum, Variance };

// The part of a tensor that a rank holds in a buffer. Without axes it is the whole tensor (replicated).
struct Shard {
  TensorId tensor = {};
  TensorPart part = TensorPart::Value;
  int dim = 0;                        // the tensor is cut along this dimension
  std::vector<AxisId> split_by = {};  // over these axes; empty: not cut
  // The dimension consists of `blocks` equal blocks, each of which is cut (fused QKV; gate and up).
  std::int64_t blocks = 1;
  std::vector<std::int64_t> block_rows = {};  // sizes of unequal blocks (grouped-query QKV); empty: equal
  std::vector<AxisId> flat_by = {};           // ZeRO: the buffer as a flat array, padded, is cut over these axes
  Bytes at = {};                              // its offset in the buffer before the flat cut
  bool operator==(const Shard&) const = default;
};

enum class Space : std::uint8_t { Device, PinnedHost, PageableHost, Nvme };
// Transient: values and scratch of one action. Communication: values that are sent or received. Framework: outside the arena.
enum class Category : std::uint8_t { Parameters, Gradients, Optimizer, Activations, Transient, Communication, Framework };
inline constexpr int kCategories = 7;
enum class Scope : std::uint8_t { Rank, Device };  // Device: shared by all ranks of a device; executors refuse it

// Memory of each rank of a role, in slots of `bytes` each: one slot per micro-batch in flight, weight version or buffer of a ring of
// gathers.
struct Buffer {
  std::string name = {};
  Category category = Category::Transient;
  Space space = Space::Device;
  Scope scope = Scope::Rank;
  DType dtype = DType::BF16;
  Bytes bytes = {};                    // of one slot
  std::vector<Bytes> offsets = {{0}};  // [slot], in the arena of `space`; set by the memory planner
  std::vector<Shard> holds = {};       // shards of parameters, gradients or optimizer states in it
  bool resident = false;               // always alive, never acquired
  bool operator==(const Buffer&) const = default;
};

// A slot number: fixed, or the value that the action passes for a parameter of the segment.
struct Slot {
  std::variant<std::int32_t, ParamId> which = 0;
  bool operator==(const Slot&) const = default;
};
struct Block {
  BufferId buffer = {};
  Slot slot = {};
  bool operator==(const Block&) const = default;
};
// A block, or a range of its bytes.
struct Use {
  BufferId buffer = {};
  Slot slot = {};
  Bytes from = {};
  std::optional<Bytes> length = {};  // empty: to the end of the block
  bool operator==(const Use&) const = default;
};
struct EventUse {  // a slot of an event, to record or to wait for
  EventId event = {};
  Slot slot = {};
  bool operator==(const EventUse&) const = default;
};

// ---- instructions: a closed set of six ------------------------------------------------------------------------------------
// docs/operators.md gives the order of operands (Instruction::reads, writes) for each operator and phase.
struct Compute {
  Operation op = ops::MatMul{};
  Phase phase = Phase::Forward;
  std::vector<Shape> shapes = {};
  Flops flops = {};
  Bytes traffic = {};  // bytes read and written in device memory
  // Adds to the content of its first output; in phase Backward: of the input's gradient.
  bool accumulate = false;
  bool accumulate_weights = false;         // in phase Backward: adds to the gradients of the weights
  std::optional<ParamId> microbatch = {};  // segment parameter with the micro-batch, for its tokens and dropout keys
  GroupId slice = {};                      // valid: works on the part of its blocks at the rank's position in this group
  double loss_scale = 1;                   // multiplies the gradient of the loss; the update divides by it
  bool dynamic_scale = false;              // also by the dynamic loss scale, which is its last read
  bool operator==(const Compute&) const = default;
};
// An operator of Phase::Update that the CPU of the node computes. Its operands lie in host memory.
struct HostCompute {
  Operation op = ops::Adam{};
  Bytes traffic = {};  // bytes read and written in host memory
  std::vector<Shape> shapes = {};
  double loss_scale = 1;  // as in Compute
  bool operator==(const HostCompute&) const = default;
};
// Point-to-point: sends reads[0], receives into writes[0], or does both at once.
struct Exchange {
  std::optional<Peer> to = {}, from = {};
  std::string tag = {};  // sends and receives with equal (peer, tag) pair up in issue order
  Bytes bytes = {};      // per direction
  GroupId slice = {};    // valid: of larger blocks, the part of `bytes` at the rank's position in this group
  bool operator==(const Exchange&) const = default;
};
enum class CollectiveKind : std::uint8_t { AllReduce, ReduceScatter, AllGather, Broadcast, Reduce, AllToAll };
enum class Combine : std::uint8_t { Sum, Mean, Max };  // what a reduction does with the members' values
enum class Algorithm : std::uint8_t {
  Ring,
  Tree,
  DoubleTree,
  Hierarchical,
  ParameterServer,
  NvlinkSharp,
  TwoDimensional,
  GatherToRoot,
  TwoLevel  // of all-to-alls
};
// `bytes` is the size of the full tensor: the input of an all-reduce or reduce-scatter, the output of an all-gather. AllToAll: what one
// member holds.
struct Collective {
  CollectiveKind kind = CollectiveKind::AllReduce;
  Algorithm algorithm = Algorithm::Ring;
  GroupId group = {};
  Bytes bytes = {};
  DType dtype = DType::BF16;
  Combine combine = Combine::Sum;
  bool accumulate = false;  // adds to the content of the output
  GroupId slice = {};       // valid: uses the slice of `bytes` of both blocks at the rank's position in this group
  // ParameterServer: the number of members that serve equal parts. Hierarchical, trees: members per node.
  int servers = 1;
  std::vector<std::int32_t> served_by = {};  // ParameterServer: positions of the servers in the group; empty: the first ones
  bool operator==(const Collective&) const = default;
};
struct Copy {  // reads[0] -> writes[0]; their spaces decide which engine copies
  Bytes bytes = {};
  GroupId slice = {};  // valid: of a larger block, copies the part of `bytes` at the rank's position in this group
  bool operator==(const Copy&) const = default;
};
struct Mark {  // does no work: it joins streams, acquires or releases blocks
  bool operator==(const Mark&) const = default;
};

struct Instruction {
  std::string name = {};
  std::variant<Compute, HostCompute, Exchange, Collective, Copy, Mark> what = {};
  StreamId stream = {};
  LayerId layer = {};                    // index of Role::layers; for granularity "layer" and for people
  std::vector<std::int32_t> after = {};  // begins after the end of these earlier instructions of the segment, on other streams
  std::vector<EventUse> waits = {};      // begins after the records that these bind to (see Meaning)
  std::vector<EventUse> records = {};
  std::vector<Use> reads = {}, writes = {};
  std::vector<Block> acquires = {}, releases = {};
  bool operator==(const Instruction&) const = default;
};

// ---- segments, actions, roles ---------------------------------------------------------------------------------------------
enum class ParamKind : std::uint8_t { Microbatch, Slot };
struct Param {
  std::string name = {};
  ParamKind kind = ParamKind::Slot;
  bool operator==(const Param&) const = default;
};
struct Segment {
  std::string name = {};
  std::vector<Param> params = {};
  std::vector<Instruction> instructions = {};
  bool operator==(const Segment&) const = default;
};
enum class Work : std::uint8_t { F, B, I, W, Update };  // F forward, B backward = I + W, I input gradient, W weight gradient
// Work that an action does. `version`: of the weights, counted in updates from the oldest that a run reads; -1: the newest.
struct Does {
  Work work = Work::F;
  std::int32_t stage = 0, microbatch = -1, version = 0;
  bool operator==(const Does&) const = default;
};
struct Action {
  SegmentId segment = {};
  std::vector<std::int32_t> args = {};  // one per Segment::params
  std::vector<Does> does = {};          // two entries: a cell (overlapped F and B); none: set-up, reduction
  bool operator==(const Action&) const = default;
};
// The number of the slot in this action.
inline std::int32_t value_of(const Slot& slot, const Action& action) {
  if (const auto* number = std::get_if<std::int32_t>(&slot.which)) return *number;
  return action.args[std::get<ParamId>(slot.which).index()];
}
// CopyIn: from host memory to the device; CopyOut: back. Host: computes of the CPU. Storage: copies to and from NVMe drives.
enum class StreamKind : std::uint8_t { Compute, Communication, CopyIn, CopyOut, Host, Storage };
struct Stream {
  std::string name = {};
  StreamKind kind = StreamKind::Compute;
  bool operator==(const Stream&) const = default;
};
struct Event {
  std::string name = {};
  std::int32_t slots = 1;
  bool operator==(const Event&) const = default;
};
// A class of ranks that run the same program: usually those of one pipeline stage.
struct Role {
  std::string name = {};
  std::string device_kind = {};  // Gpu::name
  std::vector<AxisId> axes = {};
  std::vector<Stream> streams = {};
  std::vector<Event> events = {};
  std::vector<std::string> layers = {};  // Instruction::layer refers to these names, so that roles can share segments
  std::vector<Buffer> buffers = {};
  std::vector<Action> actions = {};  // in issue order
  // [k]: action k of the next run is issued right after this action of this run. Ascending; each is an action behind the first ones that
  // are issued ahead. Empty: nothing of the next run is issued before the last action.
  std::vector<std::int32_t> ahead = {};
  bool operator==(const Role&) const = default;
};

// ---- placement and costs --------------------------------------------------------------------------------------------------
// Which device each rank runs on. Ranks take devices 0, 1, ... in `order`, which has every axis of the plan and kRole once, the fastest
// first. An empty order is the order of Plan::axes, then the role. If `explicit_devices` is not empty, it has one device per rank, in rank
// order, and `order` is ignored.
struct Placement {
  static constexpr AxisId kRole = {};
  std::vector<AxisId> order = {};
  std::vector<DeviceId> explicit_devices = {};
  bool operator==(const Placement&) const = default;
};
struct Cost {              // of one instruction
  Nanoseconds busy = {};   // compute: isolated time; communication and copy: time before the first byte
  double wire_factor = 1;  // bytes on the links / bytes of the instruction (protocol, efficiency)
  double sm_share = 0;     // communication: share of the compute units that it occupies while it runs
  bool operator==(const Cost&) const = default;
};
struct CostTable {  // costs on one kind of device
  std::string device_kind = {};
  std::string profile_hash = {};                   // MachineProfile::hash of the profile they come from; empty: none
  std::vector<std::vector<Cost>> by_segment = {};  // [segment][instruction]
  bool operator==(const CostTable&) const = default;
};

struct Plan {
  static constexpr int kVersion = 2;
  int version = kVersion;
  std::string origin = {};   // JSON text: the strategy, model and cluster that it was made from, with their hashes
  std::int64_t samples = 0;  // sequences or images that one run trains on, over all replicas; at least one per micro-batch
  int updates = 1;           // optimizer steps of each stage in one run; more than one: without pipeline flushes
  int stages = 1;            // pipeline stages, all chunks counted
  int microbatches = 1;      // per data-parallel replica
  std::vector<Axis> axes = {};
  std::vector<Group> groups = {};
  std::vector<Tensor> tensors = {};
  std::vector<Segment> segments = {};
  std::vector<Role> roles = {};
  Placement placement = {};
  std::vector<CostTable> costs = {};  // not part of program_hash(): other costs do not make another program
  Bytes framework = {};               // device memory outside the arena: context, workspaces, NCCL; not in the hash either
  Bytes reserve = {};                 // device memory kept free; not in the hash either
  bool operator==(const Plan&) const = default;
};
// Whether some role begins its next run before this one has ended. A run by itself then fills and drains the pipeline; of many in a row
// only the first does the one, and only the last the other.
inline bool runs_overlap(const Plan& plan) {
  for (const Role& role : plan.roles)
    if (!role.ahead.empty()) return true;
  return false;
}

// 16 hexadecimal digits over everything but costs, framework, reserve and origin.
std::string program_hash(const Plan& plan);

// JSON, versioned and strict; load(save(p)) == p. Throw Error with file and field.
std::string to_json(const Plan& plan);
Plan parse_plan(const std::string& text, const std::string& file_name);
Plan load_plan(const std::string& path);
void save_plan(const Plan& plan, const std::string& path);  // writes to a temporary name, then renames

}  // namespace foreshard
