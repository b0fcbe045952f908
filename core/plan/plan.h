// The Plan: the program that every rank obeys, whoever plays it (simulator, host, CUDA). A plain value.
//
//   Plan -> roles -> actions (issue order) -> segments (shared) -> instructions
//
// Meaning, the same in every reader:
//   issue order   a role issues its actions in order and the instructions of each in order; nothing waits at an action's border
//   stream        instructions of one stream run one after another, in issue order
//   event         `wait (e, slot)` binds to the newest `record (e, slot)` issued before it by the same rank; none in this run:
//                 the one of the previous run of the plan (satisfied in the first run)
//   ranks         meet only in exchanges and collectives, in issue order per (peer, tag) or per group; both sides of an
//                 exchange have to be there before the first byte moves
//   memory        a block (buffer, slot) is alive from the start of the instruction that acquires it to the end of the one that
//                 releases it, several times if need be; a block has one offset for the whole plan. Resident buffers are
//                 never acquired. The blocks alive at the end of a run are those alive at its start
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
// Axes and their kinds: core/plan/axis.h. A role has some of the plan's axes.

// Ranks that share a communicator: the given roles (none: the rank's own role), all coordinates of `over`, equal elsewhere.
// Members are ordered by (position of the role in `roles`, coordinates, the last axis of `over` fastest).
struct Group {
  std::string name = {};
  std::vector<RoleId> roles = {};
  std::vector<AxisId> over = {};
  bool operator==(const Group&) const = default;
};

// The other end of an exchange, relative to the rank: role (own + role_shift), coordinate (own + shift) mod size on one axis.
struct Peer {
  std::int32_t role_shift = 0;
  AxisId axis = {};
  std::int32_t shift = 0;
  bool operator==(const Peer&) const = default;
};

// ---- what: tensors and memory ---------------------------------------------------------------------------------------------
// A logical tensor of the model, before any split: initialisation, checkpoints, gradient check.
struct Tensor {
  std::string name = {};
  std::vector<std::int64_t> shape = {};
  DType dtype = DType::F32;
  std::string init = {};    // "normal(0.02)", "zeros", "ones"
  Grid grid = Grid::Dense;  // Expert: of experts; its axes are read by their expert kinds
  bool operator==(const Tensor&) const = default;
};

// What a shard of a logical tensor is: its value, its gradient or an optimizer state.
enum class TensorPart : std::uint8_t { Value, Gradient, Master, Momentum, Variance };

// The part of a tensor that a rank holds in a buffer; no axes: all of it (replicated).
struct Shard {
  TensorId tensor = {};
  TensorPart part = TensorPart::Value;
  int dim = 0;                                // tensor-parallel cut along this dimension ...
  std::vector<AxisId> split_by = {};          // ... by these axes
  std::int64_t blocks = 1;                    // the dimension is `blocks` equal blocks, each cut (fused QKV, gate and up)
  std::vector<std::int64_t> block_rows = {};  // their sizes where they differ (grouped-query QKV); empty: equal
  std::vector<AxisId> flat_by = {};           // then a flat, padded cut of the buffer (ZeRO)
  Bytes at = {};                              // where it begins in the buffer (before the flat cut)
  bool operator==(const Shard&) const = default;
};

enum class Space : std::uint8_t { Device, PinnedHost, PageableHost, Nvme };
enum class Category : std::uint8_t { Parameters, Gradients, Optimizer, Activations, Transient, Communication, Framework };
inline constexpr int kCategories = 7;
enum class Scope : std::uint8_t { Rank, Device };  // Device: shared by all ranks of a device (server state): to come

// resident = alive for ever, never acquired; per micro-batch, weight version, gather ring = several slots.
struct Buffer {
  std::string name = {};
  Category category = Category::Transient;
  Space space = Space::Device;
  Scope scope = Scope::Rank;
  DType dtype = DType::BF16;
  Bytes bytes = {};
  std::vector<Bytes> offsets = {{0}};  // one per slot, in the arena of `space`; filled by the memory planner
  std::vector<Shard> holds = {};       // parameters, gradients, optimizer states
  bool resident = false;
  bool operator==(const Buffer&) const = default;
};

// A fixed number, or the value that the action gives to a parameter of the segment.
struct Slot {
  std::variant<std::int32_t, ParamId> which = 0;
  bool operator==(const Slot&) const = default;
};
struct Block {
  BufferId buffer = {};
  Slot slot = {};
  bool operator==(const Block&) const = default;
};
// A block, or a byte range of it.
struct Use {
  BufferId buffer = {};
  Slot slot = {};
  Bytes from = {};
  std::optional<Bytes> length = {};
  bool operator==(const Use&) const = default;
};
struct EventUse {
  EventId event = {};
  Slot slot = {};
  bool operator==(const EventUse&) const = default;
};

// ---- instructions: a closed set of six ------------------------------------------------------------------------------------
// Operand order of each operator and phase: docs/operators.md.
struct Compute {
  Operation op = ops::MatMul{};
  Phase phase = Phase::Forward;
  std::vector<Shape> shapes = {};
  Flops flops = {};
  Bytes traffic = {};                      // bytes read and written in device memory
  bool accumulate = false;                 // adds to what its first output holds; of phase Backward: the gradient of the input
  bool accumulate_weights = false;         // of phase Backward: adds to the gradients of the weights
  std::optional<ParamId> microbatch = {};  // which micro-batch: tokens, dropout keys
  GroupId slice = {};                      // works on the part of its blocks that belongs to the rank's place in this group
  double loss_scale = 1;                   // the loss's gradient is multiplied by it, the update divides by it
  bool dynamic_scale = false;              // ... and by the state of the dynamic loss scale, its last read
  bool operator==(const Compute&) const = default;
};
// On the processor of the node, of phase Update; operands lie in host memory.
struct HostCompute {
  Operation op = ops::Adam{};
  Bytes traffic = {};  // bytes read and written in host memory
  std::vector<Shape> shapes = {};
  double loss_scale = 1;  // as in Compute
  bool operator==(const HostCompute&) const = default;
};
// Sends reads[0] and/or receives into writes[0] in one step.
struct Exchange {
  std::optional<Peer> to = {}, from = {};
  std::string tag = {};  // pairs a send with a receive, in issue order per (peer, tag)
  Bytes bytes = {};      // per direction
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
  GatherToRoot
};
// `bytes`: of the full tensor, the input of an all-reduce or reduce-scatter, the output of an all-gather. AllToAll: what one member holds.
struct Collective {
  CollectiveKind kind = CollectiveKind::AllReduce;
  Algorithm algorithm = Algorithm::Ring;
  GroupId group = {};
  Bytes bytes = {};
  DType dtype = DType::BF16;
  Combine combine = Combine::Sum;
  bool accumulate = false;  // adds to what the output holds
  GroupId slice = {};       // of both blocks, the slice of `bytes` that belongs to the rank's place in this group
  int servers = 1;          // ParameterServer: the first members serve, an equal part each. Hierarchical, trees: of a node
  bool operator==(const Collective&) const = default;
};
struct Copy {  // reads[0] -> writes[0]; their spaces say which engine
  Bytes bytes = {};
  GroupId slice = {};  // of a block that is larger: the part of `bytes` that belongs to the rank's place in this group
  bool operator==(const Copy&) const = default;
};
struct Mark {  // nothing; joins streams, carries acquire or release
  bool operator==(const Mark&) const = default;
};

struct Instruction {
  std::string name = {};
  std::variant<Compute, HostCompute, Exchange, Collective, Copy, Mark> what = {};
  StreamId stream = {};
  LayerId layer = {};                    // of Role::layers; for granularity "layer" and for the reader
  std::vector<std::int32_t> after = {};  // earlier instructions of this segment, on other streams
  std::vector<EventUse> waits = {};      // records of earlier actions
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
enum class Work : std::uint8_t { F, B, I, W, Update };  // B = I + W; I input gradient, W weight gradient
struct Does {
  Work work = Work::F;
  std::int32_t stage = 0, microbatch = -1, version = 0;
  bool operator==(const Does&) const = default;
};
struct Action {
  SegmentId segment = {};
  std::vector<std::int32_t> args = {};
  std::vector<Does> does = {};  // two entries: an overlapped F&B cell; none: set-up, reduction
  bool operator==(const Action&) const = default;
};
// The slot that the action means.
inline std::int32_t value_of(const Slot& slot, const Action& action) {
  if (const auto* number = std::get_if<std::int32_t>(&slot.which)) return *number;
  return action.args[std::get<ParamId>(slot.which).index()];
}
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
struct Role {
  std::string name = {};
  std::string device_kind = {};
  std::vector<AxisId> axes = {};
  std::vector<Stream> streams = {};
  std::vector<Event> events = {};
  std::vector<std::string> layers = {};  // names that Instruction::layer refers to, so that roles can share segments
  std::vector<Buffer> buffers = {};
  std::vector<Action> actions = {};
  bool operator==(const Role&) const = default;
};

// ---- placement and costs --------------------------------------------------------------------------------------------------
// Ranks take devices in this order: kRole and every axis of the plan once, the first fastest; an empty order is that of
// Plan::axes, then the role. A rank listed in `explicit_devices` (one entry per rank, in rank order) overrides the rule.
struct Placement {
  static constexpr AxisId kRole = {};
  std::vector<AxisId> order = {};
  std::vector<DeviceId> explicit_devices = {};
  bool operator==(const Placement&) const = default;
};
struct Cost {
  Nanoseconds busy = {};   // compute: isolated time; communication and copy: time before the first byte
  double wire_factor = 1;  // bytes on the links / bytes of the instruction (protocol, efficiency)
  double sm_share = 0;     // communication: part of the compute units it takes while it runs
  bool operator==(const Cost&) const = default;
};
struct CostTable {
  std::string device_kind = {};
  std::string profile_hash = {};
  std::vector<std::vector<Cost>> by_segment = {};  // [segment][instruction]
  bool operator==(const CostTable&) const = default;
};

struct Plan {
  static constexpr int kVersion = 2;
  int version = kVersion;
  std::string origin = {};   // the strategy, model and cluster it came from (JSON text), with their hashes
  std::int64_t samples = 0;  // sequences or images that one run trains on, all replicas; at least one per micro-batch
  int updates = 1;           // optimizer steps of each stage in one run; several: without a flush
  int stages = 1;            // pipeline stages, all chunks counted
  int microbatches = 1;      // per data-parallel replica
  std::vector<Axis> axes = {};
  std::vector<Group> groups = {};
  std::vector<Tensor> tensors = {};
  std::vector<Segment> segments = {};
  std::vector<Role> roles = {};
  Placement placement = {};
  std::vector<CostTable> costs = {};  // not part of program_hash(): recalibrating does not make another program
  Bytes framework = {};               // outside the arena: context, workspaces, NCCL; also not in the hash
  Bytes reserve = {};                 // kept free; also not in the hash
  bool operator==(const Plan&) const = default;
};

// 16 hexadecimal digits over everything but costs, framework, reserve and origin.
std::string program_hash(const Plan& plan);

// JSON, versioned and strict; load(save(p)) == p. Throw Error with file and field.
std::string to_json(const Plan& plan);
Plan parse_plan(const std::string& text, const std::string& file_name);
Plan load_plan(const std::string& path);
void save_plan(const Plan& plan, const std::string& path);  // writes to a temporary name, then renames

}  // namespace foreshard
