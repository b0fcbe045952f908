// Plans whose communication is compressed: sound, with the bytes and the memory that the codes need.
#include "strategy/resolve/compression.h"

#include <map>

#include "core/check/check_plan.h"
#include "core/cluster_file/cluster_file.h"
#include "core/network/network.h"
#include "replay/replay.h"
#include "strategy/tune/tune.h"
#include "tests/how_many.h"
#include "tests/strategy/support_random_strategy.h"

namespace foreshard::compression_test {
namespace {

Compression random_gradients(RandomChoice& random) {
  return random.one_of<Compression>({{},
                                     {.codec = Codec::Dgc, .kept = random.one_of({0.001, 0.01, 0.3, 1.0})},
                                     {.codec = Codec::OneBit, .warm_up = random(0, 3)},
                                     {.codec = Codec::EightBit},
                                     {.codec = Codec::Segmented, .bits = random.one_of({2, 4, 8})},
                                     {.codec = Codec::Segmented, .bits = 4, .segments = 8}});
}
Compression random_activations(RandomChoice& random) {
  return random.one_of<Compression>({{},
                                     {.tokens = random.one_of({0.1, 0.5, 1.0})},
                                     {.codec = Codec::Segmented, .tokens = random.one_of({0.1, 0.5}), .bits = 8},
                                     {.codec = Codec::Segmented, .bits = random.one_of({2, 4, 8})}});
}

const Collective* collective(const Instruction& run) { return std::get_if<Collective>(&run.what); }

TEST(Compression, EveryPlanWithCodesIsSound) {
  RandomChoice random(20261123);
  const Cluster cluster = load_cluster("dgx-a100-x16");
  int plans = 0, gradients = 0, activations = 0, sharded = 0, doubled = 0, stale = 0;
  for (int round = 0; round < how_many(500, 1000); ++round) {
    const Model model = random_model(random);
    Strategy s = random_strategy(random);
    s.communication.gradients = random_gradients(random), s.communication.activations = random_activations(random);
    if (random(0, 1) > 0) s.zero.stage = 0;
    if (random(0, 1)) {
      s.pipeline.schedule = static_cast<Schedule>(random(0, static_cast<int>(Schedule::PipeMare)));
      s.virtual_stages = s.pp > 1 ? random(1, 2) : 1;
    }
    if (random(0, 1)) s.communication.compress_group = random.one_of({0, 1, 2, 4, 8});
    if (random(0, 2) > 0) s.optimizer.clip_norm = 0;
    s.communication.algorithm = random(0, 3) > 0 ? std::optional(Algorithm::Ring) : std::nullopt;
    if (s.batch.micro == 2 && random(0, 1)) s.communication.parts = {2};
    if (s.optimizer.kind == OptimizerKind::Sgd && random(0, 1)) s.optimizer.momentum = 0.9;
    if (s.optimizer.loss_scale == 0) s.optimizer.loss_scale = 1;
    const auto answer = tuned_plan(model, cluster, s, {.check = false});
    const auto* lowered = std::get_if<Lowered>(&answer);
    if (!lowered) continue;
    ++plans;
    bool sums = false, rows = false;
    for (const Segment& segment : lowered->plan.segments)
      for (const Instruction& run : segment.instructions) {
        const auto* compute = std::get_if<Compute>(&run.what);
        sums |= compute && is<ops::Decode>(compute->op) && (run.name == "decode" || run.name == "add parts");
        rows |= compute && (is<ops::PutRows>(compute->op) || (is<ops::Decode>(compute->op) && run.name != "decode"));
      }
    gradients += sums, activations += rows;
    const ScheduleEntry& schedule = schedule_entry(*lowered->strategy.pipeline.schedule);
    sharded += sums && lowered->strategy.zero.stage > 0;
    doubled += sums && schedule.routes > 1, stale += sums && schedule.backwards_per_update;
    const auto defects = check_plan(lowered->plan);
    ASSERT_TRUE(defects.empty()) << to_json(lowered->strategy) << defects[0].rule << " at " << defects[0].where << ": "
                                 << defects[0].what;
  }
  EXPECT_GT(plans, how_many(60, 120));
  EXPECT_GT(gradients, how_many(20, 40));
  EXPECT_GT(activations, how_many(10, 25));
  EXPECT_GT(sharded, how_many(4, 10));
  EXPECT_GT(doubled, how_many(0, 3));
  EXPECT_GT(stale, how_many(0, 3));
}

// Bytes that a rank sends in the sums of gradients over replicas.
double sent_bytes(const Plan& plan, int replicas) {
  double sum = 0;
  for (const Segment& segment : plan.segments)
    for (const Instruction& run : segment.instructions)
      if (const Collective* what = collective(run); what && plan.groups[what->group.index()].name == "data")
        sum += collective_volume(what->kind, what->algorithm, what->bytes, replicas).bytes;
  return sum;
}

// All-gather of pairs of 8 bytes: (n - 1) 8 density E. Ring in fp32: 2 (n - 1) / n 4 E. Equal at density 1 / n.
TEST(Compression, FewPairsBeatTheRingBelowADensityOfOneOverTheRanks) {
  for (const int n : {2, 4, 8}) {
    Strategy s{.dp = n, .batch = {.micro = 1, .global = n}, .precision = DType::F32};
    s.framework = "foreshard";
    const Model model = load_model("gpt2-124m");
    const Cluster cluster = load_cluster("dgx-a100");
    const auto bytes = [&](double density) {
      Cluster part = cluster;
      s.communication.gradients = density > 0 ? Compression{.codec = Codec::Dgc, .kept = density} : Compression{};
      Strategy of = s;
      of.pp = 8 / n;
      of.batch.global = n * of.pp;
      return sent_bytes(lowered(model, part, of).plan, n);
    };
    const double ring = bytes(0), border = 1.0 / n;
    EXPECT_LT(bytes(border * 0.98), ring) << n;
    EXPECT_GT(bytes(border * 1.02), ring) << n;
    EXPECT_NEAR(bytes(border) / ring, 1, 1e-4) << n;  // the vectors are summed as they are in both
  }
}

// Of 124M parameters in 4 bits: codes go out and sums come back, (n - 1) / n of each; a header of 20 bytes for each part.
TEST(Compression, CodesOfSumsTakeBitsOfTheirBytes) {
  Strategy s{.dp = 8, .batch = {.micro = 1, .global = 8}};
  const double plain = sent_bytes(lowered(load_model("gpt2-124m"), load_cluster("dgx-a100"), s).plan, 8);
  for (const int bits : {4, 8}) {
    s.communication.gradients = {.codec = Codec::Segmented, .bits = bits};
    const double coded = sent_bytes(lowered(load_model("gpt2-124m"), load_cluster("dgx-a100"), s).plan, 8);
    EXPECT_NEAR(coded / plain, bits / 16.0, 0.002) << bits;
  }
}

// Half of 1024 tokens: rows of 512 tokens in bf16, and a score of 4 bytes for each token.
TEST(Compression, SumsOfKeptTokensTakeTheirRowsAndTheScores) {
  Strategy s{.dp = 1, .tp = 8, .batch = {.micro = 2, .global = 2}};
  s.communication.activations = {.tokens = 0.5};
  const Model model = load_model("gpt2-1.5b");
  const auto& shape = std::get<Transformer>(model.shape);
  Transformer cut = shape;
  cut.heads = cut.kv_heads = 16, cut.head_dim = 100;
  const Plan plan = lowered({.name = "cut", .shape = cut}, load_cluster("dgx-a100"), s).plan;
  int rows = 0, scores = 0;
  for (const Instruction& run : plan.segments[0].instructions) {
    const Collective* what = collective(run);
    const bool of_rows = run.name == "projection_reduce" || run.name == "fc2_reduce";
    if (!what || (!of_rows && run.name != "token_scores_sum")) continue;
    if (run.name == "token_scores_sum") {
      EXPECT_EQ(what->bytes, (Bytes{4 * 1024 * 2}));
      ++scores;
    } else {
      EXPECT_EQ(what->bytes, (Bytes{512 * 1600 * 2 * 2})) << run.name;
      ++rows;
    }
  }
  EXPECT_EQ(scores, shape.layers);
  EXPECT_EQ(rows, 2 * shape.layers);
}

// One half of them in 8 bits: an all-to-all and an all-gather of a byte for each number of 512 rows, and five borders of 4 bytes a part; with
// sequence parallelism one of both, for the gradient the other one.
TEST(Compression, CodesOfKeptTokensTakeAByteOfTheirNumbers) {
  const Model model = load_model("gpt2-355m");
  for (const bool sequence : {false, true}) {
    Strategy s{.dp = 1, .tp = 8, .sequence_parallel = sequence, .batch = {.micro = 2, .global = 2}};
    s.communication.activations = {.codec = Codec::Segmented, .tokens = 0.5, .bits = 8};
    const Plan plan = lowered(model, load_cluster("dgx-a100"), s).plan;
    const Bytes kept = {512 * 1024 * 2 + 8 * 20}, all = {1024 * 1024 * 2 + 8 * 20};
    std::map<std::string, int> seen;
    for (const Instruction& run : plan.segments[0].instructions) {
      const Collective* what = collective(run);
      const bool of_rows = run.name.starts_with("projection_reduce") || run.name.starts_with("fc2_reduce");
      if (!what || (!of_rows && run.name.find("_gather") == std::string::npos)) continue;
      EXPECT_EQ(what->bytes, of_rows ? kept : all) << run.name;
      ++seen[std::string(of_rows ? "rows" : "gather") + (what->kind == CollectiveKind::AllToAll ? " sent" : " gathered")];
    }
    const int layers = std::get<Transformer>(model.shape).layers;
    EXPECT_EQ(seen["rows sent"], 2 * layers);
    EXPECT_EQ(seen["rows gathered"], sequence ? 0 : 2 * layers);
    EXPECT_EQ(seen["gather gathered"], sequence ? 2 * layers + 1 : 0);  // and the head
  }
}

// Eight replicas of a node add their gradients, an eighth each, in bf16; a byte of each number then goes to the other node and comes back, and a
// scale for 256 numbers.
TEST(Compression, CodesBetweenNodesAreThoseOfARanksPart) {
  const Model model = load_model("gpt2-355m");
  Strategy s{.dp = 16, .batch = {.micro = 8, .global = 128}};
  s.communication.gradients = {.codec = Codec::EightBit};
  const auto bytes_by_group = [&](int group) {
    s.communication.compress_group = group;
    const Plan plan = lowered(model, load_cluster("eth25-a100-x2"), s).plan;
    std::map<std::string, double> bytes;
    for (const Segment& segment : plan.segments)
      for (const Instruction& run : segment.instructions)
        if (const Collective* what = collective(run)) {
          const std::string& name = plan.groups[what->group.index()].name;
          bytes[name] += collective_volume(what->kind, what->algorithm, what->bytes,
                                           name == "codes"  ? 2
                                           : name == "data" ? 16
                                                            : 8)
                             .bytes;
        }
    return bytes;
  };
  double matrices = 0;
  for (const Tensor& tensor : lowered(model, load_cluster("eth25-a100-x2"), s).plan.tensors)
    if (tensor.shape.size() > 1) matrices += static_cast<double>(tensor.shape[0] * tensor.shape[1]);
  auto nodes = bytes_by_group(0), flat = bytes_by_group(1);
  EXPECT_NEAR(nodes["sums before codes"] / (2 * 7.0 / 8 * 2 * matrices), 1, 1e-3);
  EXPECT_NEAR(nodes["codes"] / (2 * 1.0 / 2 * (1 + 4.0 / 256) * matrices / 8), 1, 2e-3);
  EXPECT_NEAR((flat["data"] - nodes["data"]) / (2 * 15.0 / 16 * (1 + 4.0 / 256) * matrices), 1, 2e-3);  // vectors are in both
  EXPECT_EQ(flat.count("codes"), 0U);
}

// Where the network binds, no code of 8 bits takes longer than the numbers.
TEST(Compression, EightBitsAreFasterWhereTheNetworkBinds) {
  const Model model = load_model("gpt2-355m");
  for (const char* name : {"eth25-a100-x2", "eth25-a100-x4", "eth100-a100-x2"}) {
    const Cluster cluster = load_cluster(name);
    Strategy s{.dp = gpu_count(cluster), .batch = {.micro = 4, .global = std::int64_t{4} * gpu_count(cluster)}};
    const auto seconds = [&](const Compression& codec) {
      s.communication.gradients = codec;
      return makespan_of(lowered(model, cluster, s).plan, cluster, {.granularity = Granularity::Layer});
    };
    const double plain = seconds({});
    EXPECT_LT(seconds({.codec = Codec::EightBit}), plain) << name;
    EXPECT_LT(seconds({.codec = Codec::Segmented, .bits = 8}), plain) << name;
    EXPECT_LT(seconds({.codec = Codec::Segmented, .bits = 4}), plain) << name;
  }
}

// What check_plan says of a plan whose operators were changed.
template <class Change>
std::string rules_after(Plan plan, Change change) {
  for (Segment& segment : plan.segments)
    for (Instruction& run : segment.instructions)
      if (auto* compute = std::get_if<Compute>(&run.what)) change(*compute, run);
  std::string rules;
  for (const PlanDefect& defect : check_plan(plan))
    if (rules.find(defect.rule) == std::string::npos) rules += (rules.empty() ? "" : " ") + defect.rule;
  return rules;
}

TEST(Compression, CheckPlanFollowsNumbersThroughTheirCodes) {
  Strategy s{.dp = 4, .tp = 2, .batch = {.micro = 1, .global = 8}};
  const Model model = load_model("gpt2-124m");
  const Cluster cluster = load_cluster("dgx-a100");
  const auto adds_nothing = [](Compute& what, Instruction&) {
    if (auto* decode = std::get_if<ops::Decode>(&what.op)) decode->adds = false;
  };
  const auto adds_twice = [](Compute& what, Instruction& run) {
    if (auto* decode = std::get_if<ops::Decode>(&what.op); decode && run.name == "decode") decode->adds = true;
  };
  for (const Compression& codec : {Compression{.codec = Codec::Dgc}, Compression{.codec = Codec::Segmented}}) {
    s.communication.gradients = codec;
    const Plan plan = lowered(model, cluster, s).plan;
    EXPECT_EQ(rules_after(plan, [](Compute&, Instruction&) {}), "");
    EXPECT_EQ(rules_after(plan, adds_nothing), "gradient-not-reduced");
    EXPECT_EQ(rules_after(plan, adds_twice), codec.codec == Codec::Dgc ? "" : "gradient-over-reduced");
  }
  s.communication.gradients = {.codec = Codec::EightBit}, s.communication.compress_group = 2;
  EXPECT_EQ(rules_after(lowered(model, cluster, s).plan, adds_nothing), "gradient-not-reduced");
  s.communication.gradients = {}, s.communication.activations = {.codec = Codec::Segmented};
  EXPECT_EQ(rules_after(lowered(model, cluster, s).plan, adds_nothing), "partial-sum");
  s.sequence_parallel = true;
  EXPECT_EQ(rules_after(lowered(model, cluster, s).plan, [](Compute&, Instruction&) {}), "");
  EXPECT_NE(rules_after(lowered(model, cluster, s).plan, adds_nothing).find("partial-sum"), std::string::npos);
}

// A reduce-scatter in codes, of a step and of each micro-batch; and a stage on two ranks, one of which is left out.
TEST(Compression, CheckPlanFollowsCodesOfPartsAndOfTwoRoles) {
  const Model model = load_model("gpt2-124m");
  const Cluster cluster = load_cluster("dgx-a100");
  const auto adds_nothing = [](Compute& what, Instruction&) {
    if (auto* decode = std::get_if<ops::Decode>(&what.op)) decode->adds = false;
  };
  for (const int stage : {1, 2, 3}) {
    Strategy s{.dp = 4, .tp = 2, .batch = {.micro = 1, .global = 16}, .zero = {.stage = stage}};
    s.communication.gradients = {.codec = Codec::Segmented};
    const Plan plan = lowered(model, cluster, s).plan;
    EXPECT_EQ(rules_after(plan, [](Compute&, Instruction&) {}), "") << stage;
    EXPECT_EQ(rules_after(plan, adds_nothing), "gradient-not-reduced") << stage;
  }
  Strategy s{.dp = 2, .tp = 2, .pp = 2, .batch = {.micro = 1, .global = 16}};
  s.pipeline.schedule = Schedule::Chimera;
  for (const Compression& codec : {Compression{.codec = Codec::Dgc}, Compression{.codec = Codec::Segmented}}) {
    s.communication.gradients = codec;
    Plan plan = lowered(model, cluster, s).plan;
    EXPECT_EQ(rules_after(plan, [](Compute&, Instruction&) {}), "");
    EXPECT_NE(rules_after(plan, adds_nothing).find("gradient-not-reduced"), std::string::npos);
    for (Group& group : plan.groups)  // each role for itself
      if (group.name == "data") group.roles.clear();
    EXPECT_NE(rules_after(plan, [](Compute&, Instruction&) {}).find("gradient-not-reduced"), std::string::npos);
  }
}

std::string reason(const Strategy& strategy) {
  return refused(load_model("gpt2-124m"), load_cluster("dgx-a100"), strategy).reason;
}

TEST(Compression, WhatContradictsItIsRefused) {
  Strategy s{.dp = 8, .batch = {.global = 8}};
  s.communication.gradients = {.codec = Codec::Dgc};
  Strategy sharded = s;
  sharded.zero.stage = 2;
  EXPECT_EQ(
      reason(sharded),
      "--compress-gradients dgc:0.01 chooses among the gradients of a whole step, ZeRO 2 sums each micro-batch by itself");
  sharded.zero = {.stage = 1, .group = 4};
  EXPECT_EQ(reason(sharded),
            "--compress-gradients dgc:0.01 is one sum over all replicas, which ZeRO 1 in groups of 4 makes in two");
  sharded.zero = {.stage = 1}, sharded.communication.gradients = {.codec = Codec::OneBit, .warm_up = 1};
  EXPECT_EQ(reason(sharded), "one-bit with Adam sends the whole first moment, of which ZeRO 1 keeps a part");
  Strategy scaled = s;
  scaled.optimizer.loss_scale = 0;
  EXPECT_EQ(reason(scaled),
            "--compress-gradients dgc:0.01 keeps what it left out, and a dynamic loss scale changes what it means");
  Strategy away = s;
  away.offload.update_per_layer = true;
  EXPECT_EQ(reason(away), "--compress-gradients dgc:0.01 needs the gradients of all layers on the device until the update");
  Strategy other = s;
  other.framework = "megatron";
  EXPECT_EQ(reason(other), "framework megatron sends gradients as they are, not --compress-gradients dgc:0.01");
  Strategy tree = s;
  tree.communication.algorithm = Algorithm::Tree;
  EXPECT_EQ(reason(tree),
            "--compress-gradients dgc:0.01 sends codes, which cannot be added; --algorithm tree adds numbers on the way");
  Strategy ordered = s;
  ordered.communication.order = SumOrder::Priority;
  EXPECT_EQ(
      reason(ordered),
      "--compress-gradients dgc:0.01 sends whole buckets as they are ready, --sum-order priority parts of them in another "
      "order");
  s.communication.gradients = {.codec = Codec::OneBit};
  EXPECT_EQ(reason(s), "one-bit with Adam sends the first moment and freezes the second, which needs updates before it");
  s.communication.gradients.warm_up = 10, s.optimizer.clip_norm = 1;
  EXPECT_EQ(reason(s), "one-bit with Adam sends moments, of which the norm for clipping is not that of the gradients");

  Strategy t{.dp = 1, .tp = 4, .pp = 2, .batch = {.global = 8}};
  t.communication.activations = {.tokens = 0.5};
  Strategy flash = t;
  flash.attention = AttentionKernel::Flash;
  EXPECT_EQ(reason(flash),
            "--compress-activations token-topk:0.5 needs attention probabilities, which a flash kernel does not write");
  Strategy grouped{.dp = 8, .batch = {.global = 8}};
  grouped.communication.gradients = {.codec = Codec::EightBit};
  const auto with_group = [&](int group, auto change) {
    Strategy changed = grouped;
    changed.communication.compress_group = group;
    change(changed);
    return reason(changed);
  };
  const auto nothing = [](Strategy&) {};
  EXPECT_EQ(with_group(3, nothing), "--compress-group 3 needs groups of whole replicas that divide dp x cp = 8");
  EXPECT_EQ(with_group(8, nothing),
            "--compress-group 8 adds the gradients of all replicas as they are, nothing is left for codes");
  EXPECT_EQ(with_group(2, [](Strategy& s) { s.zero.stage = 1; }),
            "--compress-group 2 adds whole gradients, of which ZeRO 1 keeps parts");
  EXPECT_EQ(with_group(2, [](Strategy& s) { s.communication.gradients = {.codec = Codec::OneBit, .warm_up = 1}; }),
            "--compress-group 2 adds gradients, one-bit with Adam sends first moments");
  Strategy context{.dp = 1, .tp = 4, .cp = 2, .batch = {.global = 8}};
  context.communication.activations = t.communication.activations;
  EXPECT_EQ(reason(context),
            "--compress-activations token-topk:0.5 needs the attention of all queries on one rank, context parallelism splits "
            "them");
}

}  // namespace
}  // namespace foreshard::compression_test
