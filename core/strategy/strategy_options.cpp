#include "core/strategy/strategy_options.h"

#include <algorithm>

#include "core/strategy/strategy_option_kinds.h"

namespace foreshard {

namespace {

using namespace option_kinds;

constexpr std::int64_t kMostRanks = 1'000'000;

std::vector<DType> state_formats() { return {DType::BF16, DType::F16, DType::F32, DType::F64}; }

std::vector<StrategyOption> parallelism_options() {
  const std::string group = "parallelism";
  return {
      integer(&Strategy::dp, 0, kMostRanks,
              {.path = "dp",
               .flag = "--dp",
               .unit = "replicas",
               .help = "data-parallel replicas; 0: the rest of the GPUs",
               .constraint = "dp x tp x cp x pp is the number of GPUs",
               .group = group}),
      integer(&Strategy::tp, 1, kMostRanks,
              {.path = "tp",
               .flag = "--tp",
               .unit = "GPUs",
               .help = "tensor-parallel GPUs per layer",
               .constraint = "divides the number of heads",
               .group = group}),
      integer(&Strategy::pp, 1, kMostRanks,
              {.path = "pp",
               .flag = "--pp",
               .unit = "ranks",
               .help = "pipeline ranks",
               .constraint = "pp x virtual_stages stages; the first and the last may have 0 layers",
               .group = group}),
      integer(&Strategy::cp, 1, kMostRanks,
              {.path = "cp",
               .flag = "--cp",
               .unit = "GPUs",
               .help = "context-parallel GPUs, each with a part of the sequence",
               .constraint = "2 x cp divides the sequence of a causal model",
               .group = group}),
      optional_choice(&Strategy::context, {ContextKind::AllGather, ContextKind::Ring, ContextKind::AllToAll},
                      {.path = "context",
                       .flag = "--context",
                       .help = "context-parallel attention: all-gather or ring of keys and values, or all-to-all of heads; "
                               "auto: as the framework does",
                       .group = group}),
      flag(std::mem_fn(&Strategy::sequence_parallel),
           {.path = "sequence_parallel",
            .flag = "--sequence-parallel",
            .help = "splits norms and dropout along the sequence over the tensor-parallel GPUs",
            .constraint = "tp divides the sequence",
            .group = group}),
  };
}

std::vector<StrategyOption> pipeline_options() {
  const std::string group = "parallelism";
  return {
      integer(
          &Strategy::virtual_stages, 1, 1000,
          {.path = "virtual_stages",
           .flag = "--virtual-stages",
           .unit = "stages",
           .help = "model chunks per pipeline rank",
           .constraint =
               "more than 1 with interleaved-1f1b, interleaved-zb-1p, interleaved-cells and looped-bfs, 2 with zb-v, v-half, "
               "v-min and dualpipe-v",
           .group = group}),
      schedule({.path = "schedule",
                .flag = "--schedule",
                .help = "pipeline schedule (foreshard list schedules), or file:F for lists of your own; auto: 1f1b, or "
                        "interleaved-1f1b with virtual stages; best: searched for these stages and their memory",
                .constraint = "those that compute input and weight gradients apart (zb-*, v-*, dualpipe*): ZeRO 0 or 1",
                .group = group}),
      schedule_order({.path = "schedule_order",
                      .flag = "--schedule-order",
                      .help =
                          "the lists of schedule file, of every pipeline rank: 0F0 0F1 0B0 0B1; 1F0 1B0 1F1 1B1 (stage, work, "
                          "micro-batch)",
                      .constraint = "every stage and micro-batch has one F and one B, or one I and one W",
                      .group = group}),
      schedule_times({.path = "schedule_times",
                      .flag = "--schedule-times",
                      .unit = "F,I,W,C",
                      .help =
                          "zb-2p: the times of forward, input gradient, weight gradient and transfer that its order is made "
                          "for, in any unit; auto: those of a trial plan",
                      .group = group}),
      integer(part(&Strategy::pipeline, &PipelineChoice::microbatch_group), 0, kMostRanks,
              {.path = "microbatch_group",
               .flag = "--microbatch-group",
               .unit = "micro-batches",
               .help = "interleaved-1f1b, interleaved-zb-1p, interleaved-cells: micro-batches per chunk before the next chunk; "
                       "pipedream-2bw: micro-batches per update; 0: pp",
               .constraint = "at least pp; the last group is full or has at least pp",
               .group = group}),
      flag(part(&Strategy::pipeline, &PipelineChoice::delay_wgrad),
           {.path = "delay_wgrad",
            .flag = "--delay-wgrad",
            .help = "1f1b-cells, interleaved-cells: weight gradients of layers run behind the next communication, which they "
                    "help to hide",
            .constraint = "a schedule of cells",
            .group = group}),
      layer_split(
          {.path = "layer_split",
           .flag = "--layer-split",
           .unit = "layers",
           .help = "layers per stage, such as 2,3x14,2 (3x14: fourteen stages of 3); auto: balanced by time; empty: even",
           .constraint = "adds up to the layers of the model",
           .group = group}),
      stages({.path = "stages",
              .flag = "--stages",
              .unit = "LAYERS:DPxTP",
              .help = "stages with their own dp and tp, instead of --dp, --tp, --pp: 10:2x1,4x3:1x2 is a stage of 10 layers "
                      "with dp 2, tp 1, "
                      "then three stages of 4 layers with dp 1, tp 2",
              .constraint = "ZeRO 0, gpipe or 1f1b; each dp divides the micro-batches, each tp the next larger one",
              .group = group}),
      placement({.path = "placement",
                 .flag = "--placement",
                 .help = "rank order, fastest-varying first; empty: tp,cp,dp,role; role: pipeline rank; dp_outer: ZeRO groups "
                         "among each other",
                 .group = group}),
  };
}

std::vector<StrategyOption> batch_options() {
  const std::string group = "batch";
  return {
      integer(part(&Strategy::batch, &BatchSizes::micro), 1, 65'536,
              {.path = "micro_batch",
               .flag = "--micro-batch",
               .unit = "sequences",
               .help = "sequences per micro-batch",
               .group = group}),
      integer(part(&Strategy::batch, &BatchSizes::global), 0, 1'000'000'000,
              {.path = "global_batch",
               .flag = "--global-batch",
               .unit = "sequences",
               .help = "sequences per step over all replicas; 0: one micro-batch per replica",
               .constraint = "a multiple of micro_batch x dp",
               .group = group}),
      integer(part(&Strategy::batch, &BatchSizes::seq), 0, 16'777'216,
              {.path = "seq",
               .flag = "--seq",
               .unit = "tokens",
               .help = "tokens per sequence; 0: the maximum of the model",
               .group = group}),
      integer(
          part(&Strategy::batch, &BatchSizes::packed), 0, 16'777'216,
          {.path = "packed_length",
           .flag = "--packed-length",
           .unit = "tokens",
           .help =
               "tokens of each of the sequences that are packed into a row of --seq tokens and do not attend to each other; "
               "0: a row is one sequence",
           .constraint = "causal models without learned positions, windows and chunks; cp 1",
           .group = group}),
  };
}

StrategyOption packing(StrategyOption option) {
  option.type = OptionType::Choice;
  option.values = {"fast", "exact"};
  option.get = [](const Strategy& s) { return std::string(s.device_memory.exact_packing ? "exact" : "fast"); };
  option.set = [path = option.path](Strategy& s, const std::string& value, const std::string& where) {
    if (value != "fast" && value != "exact") throw Error(where, path, shown(value), "one of fast, exact");
    s.device_memory.exact_packing = value == "exact";
  };
  return option;
}

std::vector<StrategyOption> memory_options() {
  const std::string group = "memory";
  return {
      named(
          &Strategy::policy, policy_names(),
          {.path = "policy",
           .flag = "--policy",
           .help = "runtime policy of a framework (foreshard list policies): when the parameters of a layer are on the device, "
                   "with its ZeRO stage and what it offloads; auto: that of the framework, where it has "
                   "one; none: as the other options say",
           .group = group}),
      integer(part(&Strategy::zero, &Zero::stage), 0, 3,
              {.path = "zero",
               .flag = "--zero",
               .help = "ZeRO stage: 1 shards optimizer states, 2 also gradients, 3 also parameters",
               .group = group}),
      integer(part(&Strategy::zero, &Zero::group), 0, kMostRanks,
              {.path = "zero_group",
               .flag = "--zero-group",
               .unit = "GPUs",
               .help = "data-parallel GPUs that ZeRO shards over (tables: zero 2:8 for groups of 8); 0: all",
               .constraint = "divides dp",
               .group = group}),
      recompute(
          {.path = "recompute",
           .flag = "--recompute",
           .help =
               "activations that the backward recomputes: none, selective (attention), full, full:N (the first N layers of "
               "each stage), "
               "full:N,N,.. (of each stage), layers:A-B,.. (of the model), modules such as attention,norm, auto (the fewest "
               "layers that make it fit), "
               "each:8xfull,none,.. (layer by layer), best (each layer its own way, memory filled); schedules within the free "
               "or a given memory: rotor (layers), graph (operators), revolve:N (N checkpoints)",
           .group = group}),
      framework_memory({.path = "framework_memory",
                        .flag = "--framework-memory",
                        .unit = "bytes",
                        .help = "context, workspaces and communication buffers per GPU; auto: by GPU and groups",
                        .group = group}),
      number(part(&Strategy::device_memory, &DeviceMemory::reserve), 0, 1, true,
             {.path = "reserve",
              .flag = "--reserve",
              .unit = "share",
              .help = "share of the GPU memory that is kept free",
              .group = group}),
      packing(
          {.path = "packing",
           .flag = "--packing",
           .help = "how blocks are laid out in memory: fast, by rules; exact, by a search as well where the rules leave gaps",
           .group = group}),
  };
}

std::vector<StrategyOption> offload_options() {
  const std::string group = "memory";
  const std::vector<Space> homes = {Space::Device, Space::PinnedHost, Space::Nvme};
  return {
      choice(part(&Strategy::offload, &OffloadChoice::optimizer), homes,
             {.path = "offload_optimizer",
              .flag = "--offload-optimizer",
              .help = "where master copy and moments lie between steps: device, host (its memory) or nvme (its drives)",
              .constraint = "host, nvme: no dynamic loss scale",
              .group = group}),
      number(part(&Strategy::offload, &OffloadChoice::optimizer_kept), 0, 1, true,
             {.path = "offload_kept",
              .flag = "--offload-kept",
              .unit = "share",
              .help = "share of the optimizer states that stays on the device nevertheless",
              .group = group}),
      choice(part(&Strategy::offload, &OffloadChoice::updated_on), {UpdatedOn::Auto, UpdatedOn::Device, UpdatedOn::Host},
             {.path = "updated_on",
              .flag = "--updated-on",
              .help = "who runs the optimizer on offloaded states: the processor of the host, or the device, to which they are "
                      "copied and back; auto: the host",
              .group = group}),
      flag(part(&Strategy::offload, &OffloadChoice::update_per_layer),
           {.path = "update_per_layer",
            .flag = "--update-per-layer",
            .help =
                "updates a layer as soon as its gradients are summed, between the backwards; with one micro-batch no more than "
                "two layers have gradients",
            .constraint = "no gradient clipping, no dynamic loss scale, not with zb-* schedules",
            .group = group}),
      choice(
          part(&Strategy::offload, &OffloadChoice::parameters), homes,
          {.path = "offload_parameters",
           .flag = "--offload-parameters",
           .help = "where parameters lie between their uses: device, host or nvme; layer by layer they are copied in for each "
                   "forward and backward",
           .group = group}),
      choice(part(&Strategy::offload, &OffloadChoice::gradients), homes,
             {.path = "offload_gradients",
              .flag = "--offload-gradients",
              .help = "where gradients lie between the backward of their layer and the update: device, host or nvme",
              .constraint = "host, nvme: no gradient clipping",
              .group = group}),
      choice(
          part(&Strategy::offload, &OffloadChoice::activations),
          {OffloadedActivations::None, OffloadedActivations::Inputs, OffloadedActivations::All, OffloadedActivations::Vdnn,
           OffloadedActivations::FreeTime},
          {.path = "offload_activations",
           .flag = "--offload-activations",
           .help = "what of a layer is copied out after its forward and back before its backward: none, its inputs, all "
                   "that it keeps, vdnn (inputs of convolutions) or free-time (value by value, no more than memory asks for)",
           .constraint = "not with zb-* schedules, rotor, revolve or graph",
           .group = group}),
      choice(part(&Strategy::offload, &OffloadChoice::activation_home), {Space::PinnedHost, Space::Nvme},
             {.path = "offload_to",
              .flag = "--offload-to",
              .help = "where offloaded activations go: host (its memory) or nvme (its drives)",
              .group = group}),
      integer(
          part(&Strategy::offload, &OffloadChoice::activation_layers), 0, 1'000'000,
          {.path = "offload_layers",
           .flag = "--offload-layers",
           .unit = "layers",
           .help = "layers of each stage, the first ones, whose activations are offloaded; 0: all but the last of the model",
           .group = group}),
      size([](Strategy& s) -> Bytes& { return s.offload.budget; },
           {.path = "offload_budget",
            .flag = "--offload-budget",
            .unit = "bytes",
            .help = "memory of a GPU that the plan may take, its arena, with --offload-activations free-time and --policy "
                    "greedy; 0: all that it has",
            .group = group}),
  };
}

std::vector<StrategyOption> numbers_options() {
  const std::string group = "numbers";
  return {
      choice(&Strategy::precision, {DType::BF16, DType::F16, DType::F8, DType::F4, DType::TF32, DType::F32, DType::F64},
             {.path = "precision",
              .flag = "--precision",
              .help = "number format of activations and matrix products; fp8, nvfp4: the factors of linear layers are "
                      "in 8 or 4 bits, all else is in bf16; nvfp4 (Blackwell) is simulated, not run",
              .group = group}),
      optional_choice(part(&Strategy::state_dtypes, &StateDTypes::param), state_formats(),
                      {.path = "param_dtype",
                       .flag = "--param-dtype",
                       .help = "format of the parameters; auto: by precision and framework",
                       .group = group}),
      optional_choice(part(&Strategy::state_dtypes, &StateDTypes::grad), state_formats(),
                      {.path = "grad_dtype",
                       .flag = "--grad-dtype",
                       .help = "format in which gradients are accumulated and reduced; auto: by precision and framework",
                       .group = group}),
      optional_choice(part(&Strategy::state_dtypes, &StateDTypes::state), state_formats(),
                      {.path = "state_dtype",
                       .flag = "--state-dtype",
                       .help = "format of the master copy and the moments; auto: fp32, fp64 with fp64 parameters",
                       .group = group}),
      choice(&Strategy::attention, {AttentionKernel::Auto, AttentionKernel::Flash, AttentionKernel::Unfused},
             {.path = "attention",
              .flag = "--attention",
              .help = "attention kernel; auto: flash where the GPU has it",
              .group = group}),
      optional_number(&Strategy::dropout, 0, 1, true,
                      {.path = "dropout",
                       .flag = "--dropout",
                       .unit = "share",
                       .help = "dropout probability; auto: as the framework does",
                       .group = group}),
      choice(part(&Strategy::optimizer, &OptimizerChoice::kind), {OptimizerKind::Adam, OptimizerKind::Sgd},
             {.path = "optimizer", .flag = "--optimizer", .help = "optimizer", .group = group}),
      number(part(&Strategy::optimizer, &OptimizerChoice::momentum), 0, 1, false,
             {.path = "momentum", .flag = "--momentum", .help = "momentum of sgd; 0: none", .group = group}),
      optional_number(part(&Strategy::optimizer, &OptimizerChoice::clip_norm), 0, 1e9, false,
                      {.path = "clip_norm",
                       .flag = "--clip-norm",
                       .help = "gradient clipping by global norm; 0: off; auto: as the framework does",
                       .group = group}),
      number(part(&Strategy::optimizer, &OptimizerChoice::loss_scale), 0, 1e30, false,
             {.path = "loss_scale",
              .flag = "--loss-scale",
              .help = "fixed loss scale; 0: dynamic, steps that overflow are skipped",
              .group = group}),
      integer(
          part(&Strategy::optimizer, &OptimizerChoice::delay_annealing), 0, 1'000'000'000,
          {.path = "delay_annealing",
           .flag = "--delay-annealing",
           .unit = "updates",
           .help = "PipeMare's rule, for schedules without flushes: the learning rate of a stage is divided by its delay, and "
                   "less and less over this number of updates; 0: not divided",
           .group = group}),
      integer(&Strategy::vocab_multiple, 0, 1'000'000,
              {.path = "vocab_multiple",
               .flag = "--vocab-multiple",
               .help = "pads the vocabulary to a multiple of this times tp; 0: as the framework does",
               .group = group}),
  };
}

std::vector<StrategyOption> run_options() {
  const std::string group = "run";
  return {
      named(&Strategy::framework, framework_names(),
            {.path = "framework",
             .flag = "--framework",
             .help = "training framework whose defaults and overheads are assumed",
             .group = group}),
  };
}

// Parts of the two options that are objects in files.
bool set_part(Strategy& strategy, const std::string& path, const std::string& value, const std::string& where) {
  for (const OverlapPart& part : kOverlapParts) {
    if (path != std::string("overlap.") + part.name) continue;
    if (value != "true" && value != "false") throw Error(where, path, shown(value), "true or false");
    if (!strategy.communication.overlap) strategy.communication.overlap.emplace();
    *strategy.communication.overlap.*part.field = value == "true";
    return true;
  }
  if (path == "recompute.layers") {
    if (value.find_first_of(",x") != std::string::npos) {
      strategy.recompute = parse_recompute("full:" + value, where);
      return true;
    }
    const auto layers = parse<int>(value);
    if (!layers || *layers < 0) throw Error(where, path, shown(value), "layers per stage, at least 0 (0: all)");
    strategy.recompute = {.kind = RecomputeKind::Full, .layers = *layers};
    return true;
  }
  if (path == "recompute.only") {
    strategy.recompute = parse_recompute("layers:" + value, where);
    return true;
  }
  if (path != "recompute.kind" && path != "recompute.modules") return false;
  strategy.recompute = parse_recompute(value, where);
  return true;
}

}  // namespace

const std::vector<StrategyOption>& strategy_options() {
  static const std::vector<StrategyOption> table = [] {
    std::vector<StrategyOption> all;
    for (const auto& group :
         {parallelism_options(), expert_options(), pipeline_options(), batch_options(), memory_options(), offload_options(),
          numbers_options(), adapter_options(), communication_options(), compression_options(), run_options()})
      all.insert(all.end(), group.begin(), group.end());
    return all;
  }();
  return table;
}

const StrategyOption* find_option(const std::string& path) {
  const auto& table = strategy_options();
  const auto hit = std::find_if(table.begin(), table.end(), [&](const StrategyOption& option) { return option.path == path; });
  return hit == table.end() ? nullptr : &*hit;
}

void set_option(Strategy& strategy, const std::string& path, const std::string& value, const std::string& where) {
  if (const StrategyOption* option = find_option(path)) return option->set(strategy, value, where);
  if (set_part(strategy, path, value, where)) return;
  std::vector<std::string> known;
  for (const StrategyOption& option : strategy_options()) known.push_back(option.path);
  const std::string near = nearest_name(path, known);
  throw Error(where, path, "an unknown option", near.empty() ? "a path of `foreshard list options`" : "\"" + near + "\"");
}

}  // namespace foreshard
