// --precision fp8: the plan is that of bf16, but for the factors of linear layers and the memory that they lie in while they are multiplied.
#include <map>
#include <set>

#include "core/check/check_plan.h"
#include "core/cluster/cluster_slice.h"
#include "core/cluster_file/cluster_file.h"
#include "core/op/eight_bit_factors.h"
#include "tests/strategy/support_lower.h"

namespace foreshard::eight_bits_test {

namespace {

bool in_eight_bits(const Instruction& instruction) {
  const auto* compute = std::get_if<Compute>(&instruction.what);
  return compute && is<ops::MatMul>(compute->op) && compute->shapes.front().dtype == DType::F8;
}
bool is_factors(const Buffer& buffer) { return buffer.name.find(".factors.") != std::string::npos; }

// Takes the factors of 8 bits out of a plan. Each instruction that has some writes them last, and holds their place for itself alone.
class WithoutFactors {
 public:
  explicit WithoutFactors(Plan plan) : plan_(std::move(plan)) {
    std::set<SegmentId> done;
    for (const Role& role : plan_.roles) {
      number_buffers(role);
      for (const Action& action : role.actions)
        if (done.insert(action.segment).second)
          for (Instruction& instruction : plan_.segments[action.segment.index()].instructions) take_from(role, instruction);
    }
    for (Role& role : plan_.roles) {
      std::erase_if(role.buffers, is_factors);
      for (Buffer& buffer : role.buffers) std::fill(buffer.offsets.begin(), buffer.offsets.end(), Bytes{});
    }
  }
  const Plan& plan() const { return plan_; }
  int count() const { return count_; }

 private:
  void number_buffers(const Role& role) {
    new_.clear();
    int next = 0;
    for (const Buffer& buffer : role.buffers) new_.push_back(is_factors(buffer) ? BufferId{} : BufferId{next++});
  }
  void take_from(const Role& role, Instruction& instruction) {
    if (in_eight_bits(instruction)) {
      auto& compute = std::get<Compute>(instruction.what);
      ASSERT_FALSE(instruction.writes.empty());
      const BufferId factors = instruction.writes.back().buffer;
      const Buffer& buffer = role.buffers[factors.index()];
      EXPECT_TRUE(is_factors(buffer) && buffer.category == Category::Transient && buffer.dtype == DType::U8) << buffer.name;
      EXPECT_GE(buffer.bytes, eight_bit_memory(compute.shapes.front(), compute.phase, {}) - slack(compute)) << instruction.name;
      const auto here = [&](const Block& block) { return block.buffer == factors; };
      EXPECT_EQ(std::erase_if(instruction.acquires, here), 1U) << instruction.name;
      EXPECT_EQ(std::erase_if(instruction.releases, here), 1U) << instruction.name;
      instruction.writes.pop_back();
      compute.shapes.front().dtype = DType::BF16;
      ++count_;
    }
    for (auto* uses : {&instruction.reads, &instruction.writes})
      for (Use& use : *uses) use.buffer = new_[use.buffer.index()];
    for (auto* blocks : {&instruction.acquires, &instruction.releases})
      for (Block& block : *blocks) block.buffer = new_[block.buffer.index()];
  }
  // Outputs in parts (queries, keys, values): a part of their gradient at a time is a factor.
  static Bytes slack(const Compute& compute) {
    const auto& dims = compute.shapes.front().dims;
    return ops::is_forward(compute.phase) ? Bytes{} : Bytes{dims[1] * dims[2]};
  }

  Plan plan_;
  std::vector<BufferId> new_ = {};
  int count_ = 0;
};

std::vector<Strategy> ways() {
  const Overlap all = {.gradients = true, .parameters = true, .p2p = true, .tp = true};
  return {{.dp = 1},
          {.dp = 2, .zero = {.stage = 1}},
          {.dp = 4, .zero = {.stage = 3}, .communication = {.overlap = all}},
          {.dp = 2, .tp = 2, .sequence_parallel = true, .communication = {.overlap = all}},
          {.dp = 2, .tp = 2, .recompute = {.kind = RecomputeKind::Full}},
          {.dp = 2, .cp = 2},
          {.dp = 1,
           .pp = 2,
           .pipeline = {.layer_split = "2,2"},
           .recompute = {.kind = RecomputeKind::Modules, .modules = {"mlp", "norm"}}},
          {.dp = 1, .pp = 2, .virtual_stages = 2, .pipeline = {.layer_split = "1,1,1,1", .schedule = Schedule::Interleaved}},
          {.dp = 1, .pp = 2, .pipeline = {.layer_split = "2,2", .schedule = Schedule::ZeroBubbleH1}},
          {.dp = 1, .pp = 2, .virtual_stages = 2, .pipeline = {.layer_split = "1,1,1,1", .schedule = Schedule::ZeroBubbleV}},
          {.dp = 1, .stages = {{.layers = 2, .dp = 2, .tp = 1}, {.layers = 2, .dp = 1, .tp = 2}}},
          {.dp = 1, .recompute = {.kind = RecomputeKind::Revolve, .checkpoints = 2}}};
}

Strategy in(DType precision, Strategy strategy) {
  strategy.precision = precision, strategy.batch.micro = 2, strategy.batch.global = 8 * std::max(1, strategy.dp);
  strategy.attention = AttentionKernel::Flash;
  return strategy;
}

Cluster gpus(const std::string& cluster, int count) { return with_first_gpus(load_cluster(cluster), count); }
Cluster gpus_of(const Strategy& s) {
  const int ranks = s.dp * s.tp * s.cp * s.pp;
  return gpus("dgx-h100", s.stages.empty() ? ranks : 4);
}

}  // namespace

TEST(EightBits, OnlyFactorsDifferFromBf16) {
  Transformer shape = small_transformer(4);
  shape.tied_embeddings = false;
  const Model model = {.name = "small", .shape = shape};
  for (const Strategy& way : ways()) {
    SCOPED_TRACE(to_json(way));
    const Cluster cluster = gpus_of(way);
    const auto in_places_of_their_own = [&](DType precision) {  // packing by order gives slots by what it saves, so by sizes
      const auto answer = tuned_plan(model, cluster, in(precision, way), {.ignore_memory = true, .pack_by_order = false});
      return std::get<Lowered>(answer).plan;
    };
    const Plan eighth = in_places_of_their_own(DType::F8), half = in_places_of_their_own(DType::BF16);
    const auto defects = check_plan(eighth);
    EXPECT_TRUE(defects.empty()) << defects[0].rule << " " << defects[0].where << " " << defects[0].what;
    const WithoutFactors stripped(eighth), same(half);
    EXPECT_GE(stripped.count(), 4 * 3);  // four linear layers, three phases
    EXPECT_EQ(same.count(), 0);
    EXPECT_EQ(stripped.plan().segments, same.plan().segments);
    ASSERT_EQ(stripped.plan().roles.size(), same.plan().roles.size());
    for (std::size_t r = 0; r < same.plan().roles.size(); ++r)
      EXPECT_EQ(stripped.plan().roles[r].buffers, same.plan().roles[r].buffers);
  }
}

// m = 2 x 64 rows; fc1: n = 256, k = 64. As codes: 2048 bytes of largest numbers, 512 of scales, 128 x 256 of the gradient, 256 x 64 of the weights.
TEST(EightBits, FactorsLieInTheArena) {
  const Shape fc1 = {{1, 128, 256, 64}, DType::F8};
  EXPECT_EQ(eight_bit_memory(fc1, Phase::Forward, {}).value, 2560 + 128 * 64 + 256 * 64);
  EXPECT_EQ(eight_bit_memory(fc1, Phase::InputGrad, {}).value, 2560 + 128 * 256 + 256 * 64);
  EXPECT_EQ(eight_bit_memory(fc1, Phase::WeightGrad, {}).value, 2560 + 128 * 256 + 128 * 64);
  // Numbers in 16 bits where 16 does not divide a size: one byte more each.
  const Shape odd = {{1, 128, 256, 72}, DType::F8};
  EXPECT_EQ(eight_bit_memory(odd, Phase::Forward, {}).value, 2560 + 2 * 128 * 72 + 2 * 256 * 72);
  // Gradients of parts come one after the other.
  const std::int64_t parts[] = {128, 64, 64};
  EXPECT_EQ(eight_bit_memory(fc1, Phase::InputGrad, parts).value, 2560 + 128 * 128 + 256 * 64);

  const Model model = {.name = "small", .shape = small_transformer(1)};
  const Plan plan = lowered(model, gpus("dgx-h100", 1), in(DType::F8, {.dp = 1})).plan;
  std::map<std::string, std::int64_t> bytes;
  for (const Buffer& buffer : plan.roles[0].buffers)
    if (is_factors(buffer)) bytes[buffer.name] = buffer.bytes.value;
  const std::int64_t m = 128;
  EXPECT_EQ(bytes, (std::map<std::string, std::int64_t>{{"decoder.qkv.factors.0", 2560 + m * 192 + 192 * 64},
                                                        {"decoder.projection.factors.0", 2560 + m * 64 + m * 64},
                                                        {"decoder.fc1.factors.0", 2560 + m * 256 + 256 * 64},
                                                        {"decoder.fc2.factors.0", 2560 + m * 256 + 64 * 256}}));
}

TEST(EightBits, GpusWithoutThemAndLayerListsAreRefused) {
  const Model model = {.name = "small", .shape = small_transformer(2)};
  const Infeasible a100 = refused(model, gpus("dgx-a100", 1), in(DType::F8, {.dp = 1}));
  EXPECT_EQ(a100.reason, "a100-80 has no fp8 arithmetic, only bf16, fp16, tf32, fp32, fp64");
  EXPECT_EQ(a100.would_help, std::vector<std::string>{"--precision bf16"});
  const Infeasible v100 = refused(model, gpus("dgx1-v100", 1), in(DType::F8, {.dp = 1}));
  EXPECT_EQ(v100.reason, "v100-32 has no fp8 arithmetic, only fp16, fp32, fp64");
  EXPECT_EQ(v100.would_help, std::vector<std::string>{"--precision fp16"});
  EXPECT_EQ(refused(model, gpus("dgx-h100", 1), in(DType::F4, {.dp = 1})).reason,
            "h100-80 has no nvfp4 arithmetic, only fp8, bf16, fp16, tf32, fp32, fp64");
  Strategy pictures = in(DType::F8, {.dp = 1});
  pictures.attention = AttentionKernel::Auto;
  const Infeasible list = refused(load_model("resnet-50"), gpus("dgx-h100", 1), pictures);
  EXPECT_EQ(list.reason, "resnet-50 is a layer list: fp8 is for the linear layers of transformers");
}

// 4-bit codes with a scale for each 16 take 9/16 of the place of 8-bit ones.
TEST(EightBits, FactorsInNvfp4TakeNineSixteenths) {
  const Model model = {.name = "small", .shape = small_transformer(2)};
  const auto bytes = [&](DType precision) {
    const Plan plan = lowered(model, gpus("dgx-b200", 1), in(precision, {.dp = 1})).plan;
    std::map<std::string, double> of;
    for (const Buffer& buffer : plan.roles[0].buffers)
      if (is_factors(buffer)) of[buffer.name] = static_cast<double>(buffer.bytes.value);
    return of;
  };
  const auto eighth = bytes(DType::F8), fourth = bytes(DType::F4);
  ASSERT_EQ(eighth.size(), fourth.size());
  for (const auto& [name, size] : eighth) EXPECT_NEAR(fourth.at(name), size * 9 / 16, 256) << name;
}

// Costs: the products of the layers by the peak of 8 bits, all else as in bf16.
TEST(EightBits, ProductsOfLayersTakeLess) {
  Transformer shape = small_transformer(2);
  shape.hidden = 4096, shape.ffn_hidden = 16384, shape.heads = shape.kv_heads = 32, shape.head_dim = 128, shape.vocab = 32000;
  shape.max_positions = 2048;
  const Model model = {.name = "wide", .shape = shape};
  const auto seconds = [&](DType precision) {
    const Plan plan = lowered(model, gpus("dgx-h100", 1), in(precision, {.dp = 1})).plan;
    std::map<std::string, double> of;
    for (std::size_t s = 0; s < plan.segments.size(); ++s)
      for (std::size_t i = 0; i < plan.segments[s].instructions.size(); ++i)
        of[std::to_string(s) + "." + std::to_string(i) + " " + plan.segments[s].instructions[i].name] =
            static_cast<double>(plan.costs.at(0).by_segment[s][i].busy.value);
    return of;
  };
  const auto eighth = seconds(DType::F8), half = seconds(DType::BF16);
  ASSERT_EQ(eighth.size(), half.size());
  int faster = 0;
  for (const auto& [name, time] : half) {
    const std::string op = name.substr(name.rfind(' ') + 1);
    if (op == "qkv" || op == "projection" || op == "fc1" || op == "fc2") {
      EXPECT_TRUE(eighth.at(name) > 0.5 * time && eighth.at(name) < 0.8 * time) << name << " " << eighth.at(name) / time;
      ++faster;
    } else {
      EXPECT_EQ(eighth.at(name), time) << name;
    }
  }
  EXPECT_GE(faster, 12);
}

}  // namespace foreshard::eight_bits_test
