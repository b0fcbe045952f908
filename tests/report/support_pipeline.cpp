#include <algorithm>

#include "tests/report/played.h"

namespace foreshard::played {

namespace {

constexpr int kCompute = 0, kReceiveF = 1, kSendF = 2, kReceiveB = 3, kSendB = 4, kReduce = 5;

struct Builder {
  const Pipeline& pipeline;
  Plan plan = {};

  int time(const std::vector<int>& times, int stage) const {
    return times[std::min(static_cast<std::size_t>(stage), times.size() - 1)];
  }
  void add(Segment& segment, std::vector<Cost>& costs, Instruction instruction, int units) const {
    segment.instructions.push_back(std::move(instruction));
    costs.push_back({{units * pipeline.unit}, 1, 0});
  }
  static Instruction compute(const char* name, Phase phase, int units, std::vector<std::int32_t> after) {
    Compute what;
    what.phase = phase;
    what.shapes = {{{1, 1, 1, 1}, DType::BF16}};
    what.flops = {units * 1e9};
    return {.name = name, .what = what, .stream = {kCompute}, .after = std::move(after)};
  }
  // `boundary`: the lower of the two stages.
  static Instruction transfer(const char* name, int stream, bool sends, int shift, int boundary,
                              std::vector<std::int32_t> after) {
    Exchange what;
    (sends ? what.to : what.from) = Peer{shift, {}, 0};
    what.tag = (stream <= kSendF ? "activations " : "gradients ") + std::to_string(boundary);
    what.bytes = {1 << 20};
    return {.name = name, .what = what, .stream = {stream}, .after = std::move(after)};
  }
  SegmentId put(Segment segment, std::vector<Cost> costs) {
    plan.segments.push_back(std::move(segment));
    plan.costs[0].by_segment.push_back(std::move(costs));
    return {static_cast<std::int32_t>(plan.segments.size()) - 1};
  }

  // Where the neighbour's stage lives, relative to this rank; nothing at the ends and inside a rank.
  int shift(int stage, int step) const {
    const int stages = pipeline.p * pipeline.v, other = stage + step;
    if (other < 0 || other >= stages) return 0;
    return rank_of_stage(pipeline.schedule, other, pipeline.p) - rank_of_stage(pipeline.schedule, stage, pipeline.p);
  }

  SegmentId forward(int stage) {
    Segment segment{.name = "forward of stage " + std::to_string(stage)};
    std::vector<Cost> costs;
    const int from = shift(stage, -1), to = shift(stage, 1), units = time(pipeline.forward, stage);
    if (from != 0) add(segment, costs, transfer("receive", kReceiveF, false, from, stage - 1, {}), pipeline.latency);
    add(segment, costs, compute("forward", Phase::Forward, units, from != 0 ? std::vector{0} : std::vector<int>{}), units);
    const int last = static_cast<int>(segment.instructions.size()) - 1;
    if (to != 0) add(segment, costs, transfer("send", kSendF, true, to, stage, {last}), pipeline.latency);
    return put(std::move(segment), std::move(costs));
  }

  SegmentId backward(int stage) {
    Segment segment{.name = "backward of stage " + std::to_string(stage)};
    std::vector<Cost> costs;
    const int from = shift(stage, 1), to = shift(stage, -1), whole = time(pipeline.backward, stage);
    const int weight = std::min(pipeline.weight_gradient, whole);
    if (from != 0) add(segment, costs, transfer("receive", kReceiveB, false, from, stage, {}), pipeline.latency);
    add(segment, costs,
        compute("input gradient", Phase::InputGrad, whole - weight, from != 0 ? std::vector{0} : std::vector<int>{}),
        whole - weight);
    add(segment, costs, compute("weight gradient", Phase::WeightGrad, weight, {}), weight);
    segment.instructions.back().records = {{{0}, {0}}};
    const int last = static_cast<int>(segment.instructions.size()) - 1;
    if (to != 0) add(segment, costs, transfer("send", kSendB, true, to, stage - 1, {last}), pipeline.latency);
    return put(std::move(segment), std::move(costs));
  }

  SegmentId end_of_step() {
    Segment segment{.name = "end of step"};
    std::vector<Cost> costs;
    if (pipeline.reduce > 0) {
      Instruction reduce{.name = "reduce gradients", .what = Collective{.group = {0}, .bytes = {1 << 20}}, .stream = {kReduce}};
      reduce.waits = {{{0}, {0}}};
      add(segment, costs, reduce, pipeline.reduce);
    }
    if (pipeline.norm) {
      Instruction norm{.name = "gradient norm", .what = Collective{.group = {1}, .bytes = {8}}, .stream = {kReduce}};
      norm.waits = {{{0}, {0}}};
      add(segment, costs, norm, pipeline.reduce);
    }
    Instruction update = compute("update", Phase::Update, pipeline.update, {});
    for (std::size_t i = 0; i < segment.instructions.size(); ++i) update.after.push_back(static_cast<int>(i));
    add(segment, costs, update, pipeline.update);
    return put(std::move(segment), std::move(costs));
  }

  Plan build() {
    plan.axes = {{.name = "dp", .size = pipeline.replicas}};
    plan.groups = {{"dp", {}, {{0}}}, {"pp", {}, {}}};
    plan.stages = pipeline.p * pipeline.v;
    plan.microbatches = pipeline.m;
    plan.samples = static_cast<std::int64_t>(pipeline.m) * pipeline.replicas;
    plan.costs = {{.device_kind = "unit"}};
    std::vector<SegmentId> f, b;
    for (int stage = 0; stage < plan.stages; ++stage) f.push_back(forward(stage)), b.push_back(backward(stage));
    const bool ends = pipeline.reduce > 0 || pipeline.update > 0;
    const SegmentId end = ends ? end_of_step() : SegmentId{};
    int rank = 0;
    for (const auto& list : schedule_entry(pipeline.schedule).lists({pipeline.p, pipeline.m, pipeline.v, 0})) {
      Role role{.name = "stage " + std::to_string(rank), .device_kind = "unit", .axes = {{0}}};
      role.streams = {{"compute", StreamKind::Compute}};
      for (const char* name : {"receive activations", "send activations", "receive gradients", "send gradients", "reduce"})
        role.streams.push_back({name, StreamKind::Communication});
      role.events = {{"backward done", 1}};
      for (const ScheduleOp& op : list) {
        const auto stage = static_cast<std::size_t>(op.stage);
        role.actions.push_back({op.work == Work::F ? f[stage] : b[stage], {}, {{op.work, op.stage, op.microbatch, 0}}});
      }
      if (ends) role.actions.push_back({end, {}, {{Work::Update, rank, -1, 0}}});
      plan.groups[1].roles.push_back({rank++});
      plan.roles.push_back(std::move(role));
    }
    return std::move(plan);
  }
};

}  // namespace

Pipeline drawn_pipeline(std::mt19937& random) {
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  Pipeline pipeline{.schedule = pick(0, 1) != 0 ? Schedule::OneFOneB : Schedule::GPipe,
                    .p = pick(1, 5),
                    .m = pick(1, 9),
                    .replicas = pick(1, 3),
                    .latency = pick(0, 3),
                    .reduce = pick(0, 4),
                    .update = pick(0, 2)};
  pipeline.forward.clear(), pipeline.backward.clear();
  for (int stage = 0; stage < pipeline.p; ++stage)
    pipeline.forward.push_back(pick(1, 6)), pipeline.backward.push_back(pick(1, 9));
  return pipeline;
}

Plan plan_of(const Pipeline& pipeline) { return Builder{pipeline}.build(); }

Result result_of(const Pipeline& pipeline, Fold fold, const Slow& slow) {
  Result result;
  result.plan = plan_of(pipeline);
  result.trace = play(result.plan, fold, slow);
  result.makespan_s = to_seconds(result.trace.makespan).value;
  result.granularity = Granularity::Op;
  return result;
}

Cluster cluster_of(int gpus) {
  Cluster cluster;
  cluster.name = "test";
  Gpu gpu{.name = "unit", .memory = {80LL << 30}};
  gpu.fp64 = gpu.fp32 = gpu.tf32 = gpu.fp16 = gpu.bf16 = gpu.vector_fp32 = {1e12};
  cluster.gpus = {gpu};
  NodeGroup node;
  node.shape.gpu = "unit";
  node.shape.gpus = gpus;
  cluster.nodes = {node};
  return cluster;
}

}  // namespace foreshard::played
