#include "core/strategy/strategy.h"

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "core/plan/plan_words.h"

namespace foreshard {

const char* name_of(Schedule schedule) { return kScheduleNames[static_cast<std::size_t>(schedule)]; }

const char* name_of(RecomputeKind kind) {
  switch (kind) {
    case RecomputeKind::None: return "none";
    case RecomputeKind::Selective: return "selective";
    case RecomputeKind::Full: return "full";
    case RecomputeKind::Modules: return "modules";
    case RecomputeKind::Each: return "each";
    case RecomputeKind::Rotor: return "rotor";
    case RecomputeKind::Revolve: return "revolve";
    case RecomputeKind::Graph: return "graph";
  }
  return "?";
}

const char* name_of(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::Auto: return "auto";
    case AttentionKernel::Flash: return "flash";
    case AttentionKernel::Unfused: return "unfused";
  }
  return "?";
}

const char* name_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::Adam: return "adam";
    case OptimizerKind::Sgd: return "sgd";
  }
  return "?";
}

const char* name_of(ContextKind kind) {
  switch (kind) {
    case ContextKind::AllGather: return "all-gather";
    case ContextKind::Ring: return "ring";
    case ContextKind::AllToAll: return "all-to-all";
  }
  return "?";
}

const char* name_of(Transfers transfers) { return transfers == Transfers::Whole ? "whole" : "split"; }
const char* name_of(ServerPlacement placement) {
  switch (placement) {
    case ServerPlacement::First: return "first";
    case ServerPlacement::Spread: return "spread";
    case ServerPlacement::Nodes: return "nodes";
  }
  return "?";
}
const char* name_of(SumOrder order) { return order == SumOrder::Ready ? "ready" : "priority"; }
const char* name_of(Algorithm algorithm) {  // the plan's word, written as options are
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list = words<Algorithm>();
    for (std::string& name : list) std::ranges::replace(name, '_', '-');
    return list;
  }();
  return names[static_cast<std::size_t>(algorithm)].c_str();
}

const char* name_of(Space home) {
  switch (home) {
    case Space::Device: return "device";
    case Space::PinnedHost: return "host";
    case Space::PageableHost: return "pageable";
    case Space::Nvme: return "nvme";
  }
  return "?";
}

const char* name_of(UpdatedOn processor) {
  switch (processor) {
    case UpdatedOn::Auto: return "auto";
    case UpdatedOn::Device: return "device";
    case UpdatedOn::Host: return "host";
  }
  return "?";
}

const char* name_of(OffloadedActivations what) {
  switch (what) {
    case OffloadedActivations::None: return "none";
    case OffloadedActivations::Inputs: return "inputs";
    case OffloadedActivations::All: return "all";
    case OffloadedActivations::Vdnn: return "vdnn";
    case OffloadedActivations::FreeTime: return "free-time";
  }
  return "?";
}

const std::vector<std::string>& schedule_names() {
  static const std::vector<std::string> names(std::begin(kScheduleNames), std::end(kScheduleNames));
  return names;
}

const std::vector<std::string>& recompute_modules() {
  static const std::vector<std::string> names = {"attention",  "norm",       "qkv", "rope",
                                                 "projection", "activation", "mlp", "dropout"};
  return names;
}

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names = {"auto",         "none",   "deepspeed_z1", "deepspeed_z2",  "deepspeed_z3",
                                                 "zero_offload", "fsdp",   "fsdp2",        "megatron",      "bmtrain_z2",
                                                 "bmtrain_z3",   "l2l",    "gemini_cpu",   "gemini_static", "gemini_auto",
                                                 "patrickstar",  "greedy", "greedy_sync"};
  return names;
}

const std::vector<std::string>& framework_names() {
  static const std::vector<std::string> names = {"foreshard",
                                                 "megatron",
                                                 "megatron-deterministic",
                                                 "megatron-2020",
                                                 "megatron-2022",
                                                 "deepspeed",
                                                 "torchtitan",
                                                 "torchtitan-rowwise",
                                                 "torchtitan-eager",
                                                 "fsdp2",
                                                 "fms-fsdp",
                                                 "megatron-deepspeed",
                                                 "megatron-deepspeed-blocking",
                                                 "megatron-deepspeed-bf16",
                                                 "megatron-deepspeed-2020",
                                                 "megatron-zero-bubble",
                                                 "megatron-zero-bubble-2023-09",
                                                 "nemo",
                                                 "nemo-24.03",
                                                 "nemo-lora",
                                                 "nemo-lora-fp8-inputs",
                                                 "megatron-bridge",
                                                 "megatron-bridge-current",
                                                 "megatron-bridge-graphs",
                                                 "megatron-bridge-iteration-graphs",
                                                 "megatron-bridge-router-graphs",
                                                 "megatron-bridge-attention-graphs",
                                                 "megatron-bridge-unfused",
                                                 "fsdp-llm-foundry",
                                                 "fsdp-llm-foundry-autocast",
                                                 "aleph-alpha-scaling",
                                                 "aleph-alpha-rms",
                                                 "aleph-alpha-flash1",
                                                 "aleph-alpha-torch",
                                                 "nanotron",
                                                 "maxtext",
                                                 "internevo",
                                                 "llmq",
                                                 "llama-factory-deepspeed",
                                                 "hetu-galvatron",
                                                 "pytorch-ddp-apex"};
  return names;
}

// The format in memory of values whose products are in `type`.
static DType stored(DType type) { return type == DType::TF32 ? DType::F32 : is_code(type) ? DType::BF16 : type; }

// Bytes per parameter with Adam. Megatron: bf16 parameters and fp32 main gradients, 2 + 4 + 12
// (docs/user-guide/features/dist_optimizer.md); DeepSpeed: fp32 gradient partition, 2 + 4 + 12
// (runtime/zero/stage3.py); torchtitan: fp32 parameters, 16-bit copies only while they are used, 4 + 4 + 8
// (torchtitan/distributed/fsdp.py).
StateTypes state_types(const Strategy& strategy) {
  StateTypes types;
  types.compute = is_code(strategy.precision) ? DType::BF16 : strategy.precision;
  const DType storage = stored(strategy.precision);
  const bool narrow = size_of(storage) < size_of(DType::F32);
  types.param = strategy.state_dtypes.param.value_or(narrow && strategy.framework == "torchtitan" ? DType::F32 : storage);
  const bool megatron = strategy.framework == "megatron" || strategy.framework == "megatron-deterministic" ||
                        strategy.framework == "megatron-2022";
  const bool wide_gradients = (megatron && storage == DType::BF16) || (strategy.framework == "deepspeed" && narrow);
  const bool narrow_param = size_of(types.param) < size_of(DType::F32);
  types.grad = strategy.state_dtypes.grad.value_or(wide_gradients && narrow_param ? DType::F32 : types.param);
  types.state = strategy.state_dtypes.state.value_or(types.param == DType::F64 ? DType::F64 : DType::F32);
  types.param = stored(types.param), types.grad = stored(types.grad), types.state = stored(types.state);
  types.master = size_of(types.param) < size_of(types.state);
  return types;
}

std::vector<int> shortest_parts(std::vector<int> parts) {
  const auto repeats = [&] {
    const std::size_t n = parts.size();
    return n > 3 && parts[n - 1] == parts[n - 3] && parts[n - 2] == parts[n - 4];
  };
  while (repeats()) parts.resize(parts.size() - 2);
  if (parts.size() == 2 && parts[0] == parts[1]) parts.pop_back();
  if (parts == std::vector<int>{1}) parts.clear();
  return parts;
}

int widest_tp(const Strategy& strategy) {
  int widest = strategy.tp;
  for (const StageDegrees& stage : strategy.stages) widest = std::max(widest, stage.tp);
  return widest;
}

int serving_gpus(const Strategy& strategy) {
  if (!strategy.communication.asynchronous) return 0;
  return strategy.communication.servers > 0 ? strategy.communication.servers : widest_tp(strategy);
}

}  // namespace foreshard
